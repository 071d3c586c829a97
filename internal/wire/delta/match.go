package delta

import "context"

const (
	window = 32 // bytes scored at once

	goodScore = 20 // minimum number of equal bytes in a window; with fewer, the matcher looks for a better displacement
	keepScore = 8  // minimum number of equal bytes in a window; with fewer, the matcher gives up the displacement
	gain      = 4  // number of bytes by which another displacement must be better, over two windows

	// maxPastBest ends the search for a border: the search continues while its score is less than
	// maxPastBest below the best score so far.
	maxPastBest = 128
	// refineMaxPastBest takes the place of maxPastBest when refine searches again, in the unmasked
	// bytes.
	refineMaxPastBest = 512
	// The number of look-ups in the index is limited to minimumLooks plus one for each bytesPerLook
	// bytes, since each look-up reads eight cache lines of the index that are in no cache.
	minimumLooks = 4096
	bytesPerLook = 256

	// backtrack is how many bytes before a match the search for a border may go.
	backtrack = 64 << 10
)

// matcher finds the blocks of the old file that the new file consists of.
type matcher struct {
	old, new masked
	index    *index
}

// segment walks the new file from one position to another along a displacement, the distance from a
// position of the new file to its counterpart in the old one. It changes the displacement when
// another fits better.
func (m *matcher) segment(ctx context.Context, from, to int) []block {
	w := walk{matcher: m, from: from, floor: from, to: to}
	missed := 0 // bytes since the last match
	for rounds, at := 0, from; at < to; rounds++ {
		if rounds&0xfff == 0 && ctx.Err() != nil {
			return nil
		}
		score := 0
		if w.open {
			at = w.equal(at)
			if at+window > to || at+w.displacement+window > len(m.old.data) {
				at = w.close(at)
				continue
			}
			if score = m.score(at, at+w.displacement, window); score >= goodScore {
				at += window
				continue
			}
		}
		if w.mayLookUp(at) {
			if hit, displacement, ok := w.better(at); ok {
				w.change(hit, displacement)
				at, missed = hit+anchor, 0
				continue
			}
		}
		if w.open && score >= keepScore {
			at += window
			continue
		}
		if w.open {
			at = w.close(at)
		}
		// The longer nothing matches, the larger the step. When something matches again, the search
		// for a border goes backwards and finds the skipped bytes.
		step := indexStep + missed>>8
		if !w.mayLookUp(at) {
			step = max(step, 2*window)
		}
		missed += step
		at += step
	}
	if w.open {
		w.close(to)
	}
	return w.done
}

// score counts the equal bytes; n is a multiple of eight.
func (m *matcher) score(new, old, n int) int {
	score := n
	for k := 0; k < n; k += 8 {
		if x := m.differ(new+k, old+k); x != 0 {
			score -= unequal(x)
		}
	}
	return score
}

// differ returns the bits in which eight bytes differ. Bytes that are masked on
// both sides are equal.
func (m *matcher) differ(new, old int) uint64 {
	x := load64(m.new.data, new) ^ load64(m.old.data, old)
	if x != 0 && m.old.mask != nil {
		if both := m.new.mask.eight(new) & m.old.mask.eight(old); both != 0 {
			x &^= spread(both)
		}
	}
	return x
}

func (m *matcher) same(new, old int) bool {
	return m.new.data[new] == m.old.data[old] ||
		m.old.mask != nil && m.new.mask.has(new) && m.old.mask.has(old)
}

// walk is the state of one segment's walk: the open block, if any, and the
// finished ones.
type walk struct {
	*matcher
	done         []block
	from         int
	looks        int // look-ups in the index
	floor        int // end of the last closed block
	to           int
	open         bool
	start        int // beginning of the open block
	displacement int
}

// equal skips equal bytes in groups of 32 and 64, beginning at the position `at`, and returns the
// position of the first group that differs.
func (w *walk) equal(at int) int {
	end := min(w.to, len(w.old.data)-w.displacement) - 64
	for ; at <= end; at += 64 {
		n, o := w.new.data[at:at+64], w.old.data[at+w.displacement:at+w.displacement+64]
		x := load64(n, 0) ^ load64(o, 0) | load64(n, 8) ^ load64(o, 8) |
			load64(n, 16) ^ load64(o, 16) | load64(n, 24) ^ load64(o, 24)
		if x != 0 {
			return at
		}
		x = load64(n, 32) ^ load64(o, 32) | load64(n, 40) ^ load64(o, 40) |
			load64(n, 48) ^ load64(o, 48) | load64(n, 56) ^ load64(o, 56)
		if x != 0 {
			return at + 32
		}
	}
	return at
}

// mayLookUp reports whether the walk may look into the index again. The limit on look-ups shortens
// the walk through files with little in common; versions of one program need a quarter of the limit.
func (w *walk) mayLookUp(at int) bool {
	return w.looks < minimumLooks+(at-w.from)/bytesPerLook
}

// better searches the index for a displacement that fits better than the current displacement. It
// tries the next positions of the new file; the result `hit` is the position at which the
// displacement was found.
func (w *walk) better(at int) (hit, displacement int, ok bool) {
	w.looks++
	best := -1
	for k := at; k < at+w.index.step && k+anchor <= w.to; k++ {
		old, found := w.index.find(w.new.word(k), w.new.word(k+8))
		if !found || w.open && old-k == w.displacement || ok && old-k == displacement {
			continue
		}
		if score := w.advantage(k, old); score > best {
			best, hit, displacement, ok = score, k, old-k, true
		}
	}
	return hit, displacement, ok
}

// advantage returns by how many bytes a candidate fits better than the open block over two windows.
// A negative result means that the candidate is not good enough.
func (w *walk) advantage(new, old int) int {
	n := min(2*window, (w.to-new)&^7, (len(w.old.data)-old)&^7)
	score := w.score(new, old, n)
	if !w.open {
		return score - window/2
	}
	current := new + w.displacement
	return score - w.score(new, current, max(0, min(n, (len(w.old.data)-current)&^7))) - gain
}

// change closes the open block and opens a block with the given displacement, which fits better at
// the position `hit`. The border between the two blocks is the position at which the given
// displacement begins to fit better.
func (w *walk) change(hit, displacement int) {
	border := w.border(hit, displacement)
	if w.open {
		w.append(w.start, border)
	}
	w.open, w.start, w.displacement = true, border, displacement
}

// border searches backwards from the position `hit` for the best beginning of a block with the
// given displacement.
func (w *walk) border(hit, displacement int) int {
	low := max(w.floor, hit-backtrack, -displacement)
	if w.open {
		low = max(low, w.start)
	}
	score, best, border := 0, 0, hit
	for at := hit - 1; at >= low && score > best-maxPastBest; at-- {
		if w.same(at, at+displacement) {
			score++
		} else if !w.open {
			score--
		}
		if w.open && at+w.displacement < len(w.old.data) && w.same(at, at+w.displacement) {
			score--
		}
		if score > best {
			best, border = score, at
		}
	}
	return border
}

// close ends the open block near the position `at`, at the border that fits best. It returns this
// border, or the position `at` if that is later.
func (w *walk) close(at int) int {
	end := max(w.start, at-window)
	limit := min(w.to, at+window, len(w.old.data)-w.displacement)
	score, best := 0, 0
	for k := end; k < limit && score > best-maxPastBest; k++ {
		if w.same(k, k+w.displacement) {
			score++
		} else {
			score--
		}
		if score > best {
			best, end = score, k+1
		}
	}
	w.append(w.start, end)
	w.open = false
	return max(at, end)
}

func (w *walk) append(start, end int) {
	if end-start >= anchor {
		w.done = append(w.done, block{new: start, old: start + w.displacement, n: end - start})
		w.floor = end
	}
}
