package delta

// refine adjusts the ends and beginnings of blocks. It compares unmasked bytes, since a masked
// operand matches any other operand.
func refine(old, new []byte, blocks []block) []block {
	end := 0 // end of the previous block in the new file
	kept := blocks[:0]
	for i, b := range blocks {
		limit := len(new)
		if i+1 < len(blocks) {
			limit = blocks[i+1].new
		}
		switch {
		case len(kept) > 0 && end == b.new:
			moveBorder(old, new, &kept[len(kept)-1], &b)
		default:
			n := reach(b.new-end, b.old, func(k int) bool { return new[b.new-k] == old[b.old-k] })
			b = block{new: b.new - n, old: b.old - n, n: b.n + n}
		}
		b.n += reach(limit-b.newEnd(), len(old)-b.oldEnd(), func(k int) bool {
			return new[b.newEnd()+k-1] == old[b.oldEnd()+k-1]
		})
		end = b.newEnd()
		if b.n > 0 {
			kept = append(kept, b)
		}
	}
	return kept
}

// reach returns by how many bytes it is worthwhile to extend a block: up to the position at which
// the equal bytes outnumber the different bytes by most. The parameters `room` and `other` are the
// numbers of bytes available in the two files.
func reach(room, other int, agrees func(k int) bool) (n int) {
	score, best := 0, 0
	for k := 1; k <= min(room, other) && score > best-refineMaxPastBest; k++ {
		if agrees(k) {
			score++
		} else {
			score--
		}
		if score > best {
			best, n = score, k
		}
	}
	return n
}

// moveBorder moves the border between two blocks to the position with the most
// equal bytes.
func moveBorder(old, new []byte, a, b *block) {
	agree := func(x *block, at int) int {
		if o := at + x.displacement(); o >= 0 && o < len(old) && new[at] == old[o] {
			return 1
		}
		return 0
	}
	const far = 4 * window
	border, best, score := b.new, 0, 0
	for at := b.new - 1; at > a.new && at > b.new-far && at+b.displacement() >= 0; at-- {
		if score += agree(b, at) - agree(a, at); score > best {
			best, border = score, at
		}
	}
	score = 0
	for at := b.new; at < b.newEnd()-1 && at < b.new+far && at+a.displacement() < len(old); at++ {
		if score += agree(a, at) - agree(b, at); score > best {
			best, border = score, at+1
		}
	}
	moved := border - b.new
	a.n += moved
	b.new, b.old, b.n = b.new+moved, b.old+moved, b.n-moved
}
