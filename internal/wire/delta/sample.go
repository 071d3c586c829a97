package delta

import (
	"context"
	"math/bits"
)

const (
	// sampleStep is the distance between the positions of the old file that are sampled. In a
	// region in which the files agree, every 4096 successive positions of the new file include one
	// that corresponds to a sampled position.
	sampleStep = 4096
	// samples is the number of windows of the new file that are tried, and sampleHits is the number
	// of these windows that must agree. A patch is worthwhile if the files share at least an eighth
	// of their bytes; then 64 windows agree. For relinked programs, three windows in four agree;
	// for programs in different languages, one window in forty agrees.
	samples    = 512
	sampleHits = 24
	// If the files share an eighth, 16 of the first fewSamples windows are expected to agree. If fewer than fewHits
	// agree, the other windows are not tried. Among a million pairs of files that share an eighth, this wrongly
	// happens for seven.
	fewSamples = samples / 4
	fewHits    = 3
	// smallestSample is the size below which files are not sampled.
	smallestSample = 4 << 20
)

// resemble reports whether two files may have enough in common to be worth matching. It costs
// little, since it compares only a sample of windows.
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
		// The windows are spread evenly, but not at regular distances, since a file may repeat its
		// structure at regular distances.
		from, _ := bits.Mul64(uint64(i)*0x9e3779b97f4a7c15, uint64(len(new)-sampleStep-anchor))
		if hits += sample(old, new[from:][:sampleStep+anchor], table, shift); hits >= sampleHits {
			return true
		}
	}
	return false
}

// known is a sampled position of the old file. step is the position divided by sampleStep, plus 1.
// tag has some bits of the hash of the bytes at the position; it avoids reads of the file, which
// cost more than everything else.
type known struct{ step, tag uint32 }

// sample returns 1 if the window contains the bytes at any position of the table, and 0 if it does
// not.
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
