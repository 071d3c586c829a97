package delta

import (
	"context"
	"encoding/binary"
)

// corrections holds the corrections that a list of blocks needs after the bytes of the blocks were
// copied from the old file.
type corrections struct {
	bytes           sparse
	words, operands sparse
}

// encodeCorrections computes and encodes the corrections of all blocks.
func (d *differ) encodeCorrections(ctx context.Context) error {
	var moved *blockMap
	if d.variant == Small {
		moved = newBlockMap(d.oldImage, d.newImage)
		for _, b := range d.blocks {
			moved.add(b.span())
		}
		moved.complete()
	}
	d.streams[streamImages] = d.newImage.append(d.oldImage.append(nil))
	parts := split(d.blocks, int64(len(d.new)))
	found := make([]corrections, len(parts))
	d.each(len(parts), func(i int) { found[i] = d.lapCorrections(ctx, parts[i], moved) })
	var all corrections
	for _, part := range found {
		all.bytes.join(part.bytes)
		all.words.join(part.words)
		all.operands.join(part.operands)
	}
	d.streams[streamGaps], d.streams[streamValues] = all.bytes.gaps, all.bytes.values
	d.streams[streamWordGaps], d.streams[streamWordErrors] = all.words.gaps, all.words.values
	d.streams[streamOperandGaps], d.streams[streamOperandErrors] = all.operands.gaps, all.operands.values
	return ctx.Err()
}

// split divides a list of blocks into the predictor's laps.
func split(blocks []block, newSize int64) (parts [][]block) {
	for len(blocks) > 0 {
		k := 1
		for k < len(blocks) && lap(blocks[k].span(), newSize) == lap(blocks[0].span(), newSize) {
			k++
		}
		parts, blocks = append(parts, blocks[:k]), blocks[k:]
	}
	return parts
}

// lapCorrections computes the corrections of one lap.
func (d *differ) lapCorrections(ctx context.Context, blocks []block, moved *blockMap) (l corrections) {
	p := newPredictor(d.oldImage, d.newImage, moved)
	part := make([]byte, chunk)
	var want []byte
	correct := func(into *sparse) corrector {
		return corrector{right: new(int64), correct: func(at int, predicted uint32) (uint32, error) {
			actual := binary.LittleEndian.Uint32(want[at:])
			if actual == predicted {
				into.right++
			} else {
				into.word(actual - predicted)
			}
			return actual, nil
		}}
	}
	word, operand := correct(&l.words), correct(&l.operands)
	for _, b := range blocks {
		for done := 0; done < b.n; done += chunk {
			if ctx.Err() != nil {
				return l
			}
			n := min(chunk, b.n-done)
			copy(part, d.old[b.old+done:][:n])
			want = d.new[b.new+done:][:n]
			// These correctors never fail.
			_ = p.part(part[:n], int64(b.old+done), int64(b.new+done), word, operand)
			l.bytes.differences(part[:n], want)
		}
	}
	return l
}
