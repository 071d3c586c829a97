package delta

import (
	"encoding/binary"
	"math/bits"
)

const (
	everyByte = 0x0101010101010101
	lowBits   = 0x7f7f7f7f7f7f7f7f
	highBits  = 0x8080808080808080
)

func load64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// nonzeroBytes returns a word in which the high bit of each byte is 1 if that byte of x is not
// zero. All other bits of the word are 0.
func nonzeroBytes(x uint64) uint64 { return ((x & lowBits) + lowBits | x) & highBits }

// unequal returns the number of bytes of x that are not zero.
func unequal(x uint64) int { return bits.OnesCount64(nonzeroBytes(x)) }

// bitmap has one bit for each byte of a file. In a nil bitmap no bit is set.
type bitmap []byte

// newBitmap returns a bitmap for a file of `size` bytes, with room to read eight bits at any
// position.
func newBitmap(size int) bitmap { return make(bitmap, size/8+2) }

// setFour sets the bits of four bytes.
func (b bitmap) setFour(at int) {
	v := uint16(15) << (at & 7)
	b[at>>3] |= byte(v)
	b[at>>3+1] |= byte(v >> 8)
}

// eight returns the bits of the eight bytes that begin at the position `at`.
func (b bitmap) eight(at int) byte {
	return byte(binary.LittleEndian.Uint16(b[at>>3:]) >> (at & 7))
}

func (b bitmap) has(at int) bool { return b[at>>3]>>(at&7)&1 != 0 }

// spread returns eight bytes. Each byte is 0xff if its bit of b is set, and 0 if its bit is not
// set.
func spread(b byte) uint64 {
	x := uint64(b) * everyByte & 0x8040201008040201
	return nonzeroBytes(x) >> 7 * 0xff
}
