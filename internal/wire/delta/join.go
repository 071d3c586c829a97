package delta

import "slices"

// fillable is the largest number of bytes between two blocks of the same displacement that cost
// less as differences than as literals.
const fillable = 64

// join merges the segments' blocks into one list, without the borders between
// segments and without gaps that cost more than they save.
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
