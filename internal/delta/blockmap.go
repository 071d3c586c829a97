package delta

import "math"

// granule is how many addresses share an entry of the block map: functions begin
// at multiples of it.
const granule = 32

// blockMap knows where each granule of the old image went.
type blockMap struct {
	from, to image
	moved    []int32 // new address less old
}

const unknown = math.MinInt32

func newBlockMap(from, to image) *blockMap {
	m := &blockMap{from: from, to: to, moved: make([]int32, from.span/granule+1)}
	for i := range m.moved {
		m.moved[i] = unknown
	}
	return m
}

// add notes where a block's bytes went, piece by piece of both images' sections.
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

// set notes that n bytes moved. A granule goes where its first byte goes, or else
// where the first of it that is known goes.
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

// complete lets what is in no block go where its predecessor goes.
func (m *blockMap) complete() {
	moved := int32(0)
	for g, v := range m.moved {
		if v == unknown {
			m.moved[g] = moved
		}
		moved = m.moved[g]
	}
}
