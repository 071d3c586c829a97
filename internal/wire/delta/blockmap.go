package delta

import "math"

// granule is the number of addresses that share an entry of the block map. Go's linker places
// functions of x86-64 at multiples of granule.
const granule = 32

// blockMap maps each granule of the old image to its place in the new image.
type blockMap struct {
	from, to image
	moved    []int32 // address in the new image minus address in the old one
}

const unknown = math.MinInt32

func newBlockMap(from, to image) *blockMap {
	m := &blockMap{from: from, to: to, moved: make([]int32, from.span/granule+1)}
	for i := range m.moved {
		m.moved[i] = unknown
	}
	return m
}

// add records the new place of a block's bytes. It divides the block at the borders of both
// images' sections.
func (m *blockMap) add(b span) {
	for b.n > 0 {
		from, n := m.from.at(b.old)
		to, k := m.to.at(b.new)
		n = min(n, k, b.n)
		if from != nil && to != nil {
			m.set(b.old-from.offset+from.address, b.new-to.offset+to.address, n)
		}
		b.old, b.new, b.n = b.old+n, b.new+n, b.n-n
	}
}

// set records that n bytes moved from the address `from` to the address `to`. A granule moves as
// far as its first byte. If no block contains that byte, the granule moves as far as the first
// recorded block that contains any byte of the granule.
func (m *blockMap) set(from, to, n int64) {
	moved := int32(to - from)
	first, last := from/granule, (from+n-1)/granule
	if from%granule != 0 {
		if m.moved[first] == unknown {
			m.moved[first] = moved
		}
		first++
	}
	for g := first; g <= last; g++ {
		m.moved[g] = moved
	}
}

// complete fills in the granules that are in no block: each of them moves as far as the granule
// before it. Granules before the first block do not move.
func (m *blockMap) complete() {
	moved := int32(0)
	for g, v := range m.moved {
		if v == unknown {
			m.moved[g] = moved
		}
		moved = m.moved[g]
	}
}
