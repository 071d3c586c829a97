package delta

import (
	"encoding/binary"
	"math/bits"
)

// differences are what bytes lack to be others: before each value the number of
// bytes that are right as they are. Sparse and apart from each other, both compress
// far better than the difference itself.
type differences struct {
	gaps   []byte // uvarints
	values []byte // each is added to a byte

	right int // bytes that were right since the last value
}

// add appends what turns got into want.
func (d *differences) add(got, want []byte) {
	at, next := 0, 0 // next is where the current gap began
	next = -d.right
	for ; at+8 <= len(want); at += 8 {
		x := load64(got, at) ^ load64(want, at)
		if x == 0 {
			continue
		}
		for high := nonzeroBytes(x); high != 0; high &= high - 1 {
			k := at + bits.TrailingZeros64(high)>>3
			d.gaps = binary.AppendUvarint(d.gaps, uint64(k-next))
			d.values = append(d.values, want[k]-got[k])
			next = k + 1
		}
	}
	for ; at < len(want); at++ {
		if got[at] != want[at] {
			d.gaps = binary.AppendUvarint(d.gaps, uint64(at-next))
			d.values = append(d.values, want[at]-got[at])
			next = at + 1
		}
	}
	d.right = len(want) - next
}

// join appends the differences of the bytes that follow.
func (d *differences) join(following differences) {
	if len(following.values) == 0 {
		d.right += following.right
		return
	}
	first, n := binary.Uvarint(following.gaps)
	d.gaps = binary.AppendUvarint(d.gaps, first+uint64(d.right))
	d.gaps = append(d.gaps, following.gaps[n:]...)
	d.values = append(d.values, following.values...)
	d.right = following.right
}
