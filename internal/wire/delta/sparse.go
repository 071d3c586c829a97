package delta

import (
	"encoding/binary"
	"math/bits"
)

// sparse encodes a list of items, few of which need a value. It stores each value and, separately,
// the number of items before it that need no value, since values and numbers compress far better
// apart.
type sparse struct {
	gaps   []byte // uvarints
	values []byte

	right int // items without a value since the last item with one
}

// put appends a value of one byte, after the s.right items that need no value.
func (s *sparse) put(value byte) {
	s.gaps = binary.AppendUvarint(s.gaps, uint64(s.right))
	s.values = append(s.values, value)
	s.right = 0
}

// word appends a value of four bytes, after the s.right items that need no value.
func (s *sparse) word(value uint32) {
	s.gaps = binary.AppendUvarint(s.gaps, uint64(s.right))
	s.values = binary.LittleEndian.AppendUint32(s.values, value)
	s.right = 0
}

// differences appends the values that turn the bytes of `got` into the bytes of `want`.
func (s *sparse) differences(got, want []byte) {
	at, next := 0, -s.right // next is the position at which the current gap began
	for ; at+8 <= len(want); at += 8 {
		x := load64(got, at) ^ load64(want, at)
		if x == 0 {
			continue
		}
		for high := nonzeroBytes(x); high != 0; high &= high - 1 {
			k := at + bits.TrailingZeros64(high)>>3
			s.right = k - next
			s.put(want[k] - got[k])
			next = k + 1
		}
	}
	for ; at < len(want); at++ {
		if got[at] != want[at] {
			s.right = at - next
			s.put(want[at] - got[at])
			next = at + 1
		}
	}
	s.right = len(want) - next
}

// join appends the gaps and values of its parameter.
func (s *sparse) join(following sparse) {
	if len(following.values) == 0 {
		s.right += following.right
		return
	}
	first, n := binary.Uvarint(following.gaps)
	s.gaps = binary.AppendUvarint(s.gaps, first+uint64(s.right))
	s.gaps = append(s.gaps, following.gaps[n:]...)
	s.values = append(s.values, following.values...)
	s.right = following.right
}
