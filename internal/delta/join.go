package delta

import "slices"

// fillable is how many bytes between two blocks of the same displacement are
// rather differences than literals.
const fillable = 64

// join makes one list of the segments' blocks, without the seams between segments
// and without holes that are dearer than what they spare.
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

// covered counts the bytes that blocks make.
func covered(blocks []block) (n int) {
	for _, b := range blocks {
		n += b.n
	}
	return n
}
