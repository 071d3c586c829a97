package delta

import "slices"

// fillable is the largest number of bytes between two blocks of the same displacement that cost
// less as differences than as literals.
const fillable = 64

// join returns the blocks of all segments as one list. It merges two successive blocks if they have
// the same displacement and at most fillable bytes between them.
func join(segments [][]block) []block {
	all := slices.Concat(segments...)
	joined := all[:0]
	for _, b := range all {
		if len(joined) > 0 {
			last := &joined[len(joined)-1]
			if last.displacement() == b.displacement() && b.new-last.newEnd() <= fillable {
				last.n = b.newEnd() - last.new
				continue
			}
		}
		joined = append(joined, b)
	}
	return joined
}

// totalBytes counts the bytes that blocks make.
func totalBytes(blocks []block) (n int) {
	for _, b := range blocks {
		n += b.n
	}
	return n
}
