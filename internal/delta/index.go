package delta

import (
	"context"
	"math/bits"
	"sync"
)

const (
	// anchor is how many bytes of the old file one entry of the index stands for.
	anchor = 16
	// indexStep is the distance of indexed positions. A lookup tries as many
	// successive positions of the new file to hit one.
	indexStep = 8
	// maxIndexed bounds the positions, and so the index to 32 MiB: filling it is
	// much of the time that a patch takes. Of larger files every fourth of them is
	// kept, and so on: an edited executable of 80 MB is matched as well by these.
	maxIndexed = 8 << 20
)

// index finds where in the old file 16 bytes occur. It keeps the last position for
// each hash, which is as good as any: whoever asks compares.
type index struct {
	table []uint32 // position / step + 1, and above it a tag: other bits of the hash
	shift uint
	step  int
	old   masked
}

// newIndex builds the index in parts of the hash's range, so that the result does
// not depend on who is faster.
func newIndex(ctx context.Context, old masked, workers int) *index {
	step := indexStep
	for len(old.data)/step > maxIndexed {
		step *= 4
	}
	size := max(bits.Len(uint(len(old.data)/step)), 10)
	x := &index{table: make([]uint32, 1<<size), shift: uint(64 - size), step: step, old: old}
	// A part is all hashes with the same highest bits, and a worker's own.
	partBits := min(bits.Len(uint(workers))-1, 2)
	var group sync.WaitGroup
	for part := range uint64(1) << partBits {
		group.Go(func() { x.fill(ctx, part, 64-partBits) })
	}
	group.Wait()
	return x
}

func (x *index) fill(ctx context.Context, part uint64, shift int) {
	last := len(x.old.data) - anchor
	for at := 0; at <= last; at += x.step {
		if at&0xfffff == 0 && ctx.Err() != nil {
			return
		}
		a, b := x.old.word(at), x.old.word(at+8)
		if a == b {
			continue // padding: anything would match it
		}
		h := hash16(a, b)
		if h>>shift != part {
			continue
		}
		x.table[h>>x.shift] = tag(h) | (uint32(at/x.step) + 1)
	}
}

// find returns a position of the old file where the two words probably are.
func (x *index) find(a, b uint64) (int, bool) {
	if a == b {
		return 0, false
	}
	h := hash16(a, b)
	entry := x.table[h>>x.shift] ^ tag(h)
	if entry-1 >= 1<<tagShift-1 {
		return 0, false
	}
	at := int(entry-1) * x.step
	return at, x.old.word(at) == a && x.old.word(at+8) == b
}

// tagShift is where the tag begins. It spares looking at the old file for most of
// what is not there.
const tagShift = 24

func tag(h uint64) uint32 { return uint32(h) << tagShift }

func hash16(a, b uint64) uint64 {
	return (a*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(b*0xc2b2ae3d27d4eb4f, 31)) * 0x9fb21c651e98df25
}
