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
	// Of a quarter of the windows 16 are expected of such an eighth. With fewer than
	// fewHits the rest is not tried: of a million eighths, seven have no more.
	fewSamples = samples / 4
	fewHits    = 3
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
	table, shift := make([]known, 1<<size), 64-size
	for at := 0; at+anchor <= len(old); at += sampleStep {
		if a, b := load64(old, at), load64(old, at+8); a != b {
			h := hash16(a, b)
			table[h>>shift] = known{step: uint32(at/sampleStep) + 1, tag: uint32(h)}
		}
	}
	hits := 0
	for i := range samples {
		if ctx.Err() != nil || i == fewSamples && hits < fewHits {
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

// known is a position of the old file, in steps from one, with bits of its hash:
// a look at the file itself costs more than all the rest.
type known struct{ step, tag uint32 }

// sample is 1 if any position of a window is one that the table knows.
func sample(old, window []byte, table []known, shift int) int {
	for k := range sampleStep {
		a, b := load64(window, k), load64(window, k+8)
		h := hash16(a, b)
		entry := table[h>>shift]
		if entry.step == 0 || entry.tag != uint32(h) {
			continue
		}
		if at := int(entry.step-1) * sampleStep; load64(old, at) == a && load64(old, at+8) == b {
			return 1
		}
	}
	return 0
}
