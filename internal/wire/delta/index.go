package delta

import (
	"context"
	"math/bits"
	"sync"
)

const (
	// anchor is the number of bytes of the old file that one entry of the index represents.
	anchor = 16
	// indexStep is the smallest distance between indexed positions of the old file; index.step is
	// the distance in use. A lookup tries index.step successive positions of the new file, so that
	// one of them matches an indexed position.
	indexStep = 8
	// maxIndexed limits the number of indexed positions, and so limits the index to 32 MiB, since
	// filling the index takes much of the time of making a patch. For a larger file, the distance
	// between the positions is multiplied by four until the positions fit. An edited executable of
	// 80 MB is matched just as well with the larger distance.
	maxIndexed = 8 << 20
)

// index finds positions of the old file at which 16 given bytes occur. It keeps only the last
// position for each hash. Any other position with that hash would do as well, since the caller
// compares the bytes that follow.
type index struct {
	table []uint32 // the lower bits hold position / step + 1, and the bits from tagShift on hold a tag
	shift uint
	step  int
	old   masked
}

// newIndex builds the index in parts of the hash's range, so that the result
// does not depend on the order in which workers finish.
func newIndex(ctx context.Context, old masked, workers int) *index {
	step := indexStep
	for len(old.data)/step > maxIndexed {
		step *= 4
	}
	size := max(bits.Len(uint(len(old.data)/step)), 10)
	x := &index{table: make([]uint32, 1<<size), shift: uint(64 - size), step: step, old: old}
	// A part holds all hashes with the same highest bits and belongs to one
	// worker.
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
			continue // padding is not indexed, since it would match anything
		}
		h := hash16(a, b)
		if h>>shift != part {
			continue
		}
		x.table[h>>x.shift] = tag(h) | (uint32(at/x.step) + 1)
	}
}

// find returns a position of the old file at which the words a and b occur, if masked bytes count
// as zero. It returns false if the index leads to no such position.
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

// tagShift is the position of the lowest bit of the tag, which consists of further bits of the
// hash. The tag avoids reading the old file for most words that are not in it.
const tagShift = 24

func tag(h uint64) uint32 { return uint32(h) << tagShift }

func hash16(a, b uint64) uint64 {
	return (a*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(b*0xc2b2ae3d27d4eb4f, 31)) * 0x9fb21c651e98df25
}
