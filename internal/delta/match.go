package delta

import "context"

const (
	window = 32 // bytes that are scored at once

	goodScore = 20 // of a window: below, something better is looked for
	keepScore = 8  // of a window: below, the displacement is given up
	gain      = 4  // by how much another displacement must be better, of two windows

	// patience is how far past its best a border is looked for.
	patience = 128
	// refinePatience is the same for the second look, by the bytes as they are.
	refinePatience = 512
	// A look into the index is eight of its lines that are in no cache.
	minimumLooks = 4096
	bytesPerLook = 256

	// backtrack bounds the search for a border.
	backtrack = 64 << 10
)

// matcher finds out of which blocks of the old file the new one is made.
type matcher struct {
	old, new masked
	index    *index
}

// segment walks the new file from one position to another along a displacement
// into the old one, and changes it where another fits better.
func (m *matcher) segment(ctx context.Context, from, to int) []block {
	w := walk{matcher: m, from: from, floor: from, to: to}
	missed := 0 // bytes since anything was found
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
		if w.mayLook(at) {
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
		// What resembles nothing is passed ever faster; what is skipped is found
		// from behind when something matches again.
		step := indexStep + missed>>8
		if !w.mayLook(at) {
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

// score counts the bytes that agree; n is a multiple of eight.
func (m *matcher) score(new, old, n int) int {
	score := n
	for k := 0; k < n; k += 8 {
		if x := m.differ(new+k, old+k); x != 0 {
			score -= unequal(x)
		}
	}
	return score
}

// differ returns in which bits eight bytes differ. What is masked on both sides
// does not.
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

// walk is the state of one segment's walk: the block that is being made, if one
// is, and those that are.
type walk struct {
	*matcher
	done         []block
	from         int
	looks        int // in the index
	floor        int // end of the last block made
	to           int
	open         bool
	start        int // of the open block
	displacement int
}

// equal passes what agrees entirely, 64 bytes at a time.
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

// mayLook bounds the time that files take which have little in common. Versions of
// a program need a quarter of it.
func (w *walk) mayLook(at int) bool {
	return w.looks < minimumLooks+(at-w.from)/bytesPerLook
}

// better looks for a displacement that fits better than the current one, at the
// next positions of the new file.
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

// advantage compares a candidate with the open block over two windows; negative
// is not enough.
func (w *walk) advantage(new, old int) int {
	n := min(2*window, (w.to-new)&^7, (len(w.old.data)-old)&^7)
	score := w.score(new, old, n)
	if !w.open {
		return score - window/2
	}
	current := new + w.displacement
	return score - w.score(new, current, max(0, min(n, (len(w.old.data)-current)&^7))) - gain
}

// change closes the open block where the other displacement, which fits at hit,
// begins to fit better, and opens one from there.
func (w *walk) change(hit, displacement int) {
	border := w.border(hit, displacement)
	if w.open {
		w.append(w.start, border)
	}
	w.open, w.start, w.displacement = true, border, displacement
}

// border goes back from hit to where the block with another displacement best
// begins.
func (w *walk) border(hit, displacement int) int {
	low := max(w.floor, hit-backtrack, -displacement)
	if w.open {
		low = max(low, w.start)
	}
	score, best, border := 0, 0, hit
	for at := hit - 1; at >= low && score > best-patience; at-- {
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

// close ends the open block near at, where it fits best, and returns its end.
func (w *walk) close(at int) int {
	end := max(w.start, at-window)
	limit := min(w.to, at+window, len(w.old.data)-w.displacement)
	score, best := 0, 0
	for k := end; k < limit && score > best-patience; k++ {
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
