package delta

import (
	"context"
	"math/bits"
)

const (
	// sampleStep is the distance of the positions of the old file that a sample
	// knows. A window of as many positions of the new file has one of them, where
	// the two agree.
	sampleStep = 4096
	// samples is how many windows are tried, and sampleHits how many must agree. Of
	// an eighth of a file, below which it is not worth a patch, there are 64; of
	// relinked programs three windows in four agree, of programs in different
	// languages one in forty.
	samples    = 512
	sampleHits = 24
	// smallestSample is the size of files that are not worth a look beforehand.
	smallestSample = 4 << 20
)

// resemble tells at little cost whether it is worth looking closely for what two
// files have in common.
func resemble(ctx context.Context, old, new []byte) bool {
	if len(new) < smallestSample || len(old) < smallestSample {
		return true
	}
	size := bits.Len(uint(len(old)/sampleStep)) + 1
	table, shift := make([]uint32, 1<<size), 64-size
	for at := 0; at+anchor <= len(old); at += sampleStep {
		if a, b := load64(old, at), load64(old, at+8); a != b {
			table[hash16(a, b)>>shift] = uint32(at/sampleStep) + 1
		}
	}
	hits := 0
	for i := range samples {
		if ctx.Err() != nil {
			return false
		}
		// Evenly, and in step with nothing that the file may have at even distances.
		from, _ := bits.Mul64(uint64(i)*0x9e3779b97f4a7c15, uint64(len(new)-sampleStep-anchor))
		if hits += sample(old, new[from:][:sampleStep+anchor], table, shift); hits >= sampleHits {
			return true
		}
	}
	return false
}

// sample is 1 if any position of a window is one that the table knows.
func sample(old, window []byte, table []uint32, shift int) int {
	for k := range sampleStep {
		a, b := load64(window, k), load64(window, k+8)
		entry := table[hash16(a, b)>>shift]
		if entry == 0 || a == b {
			continue
		}
		if at := int(entry-1) * sampleStep; load64(old, at) == a && load64(old, at+8) == b {
			return 1
		}
	}
	return 0
}
