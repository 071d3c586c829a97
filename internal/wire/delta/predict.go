package delta

import "encoding/binary"

const (
	// laps is the number of parts into which the new file is divided. At the beginning of each lap,
	// the predictor forgets the values that it learned, so that the laps can be processed in
	// parallel.
	laps = 8

	learnedBits = 15
)

// predictor predicts those new values that depend on addresses: words of data, and operands of
// code. It processes a block in parts. Diff and Apply make the same predictions, since these depend
// only on the old file, the blocks, the images and the corrections so far.
type predictor struct {
	old, new image
	words    words
	operands *operands // nil in Fast
}

// corrector turns predictions into the right values.
type corrector struct {
	// right is the number of the next predictions that are known to be right. Whoever skips them counts them down.
	right *int64
	// correct returns the right value for the next prediction. Its parameter `at` is the position of the value in the
	// part of a block (see predictor.part).
	correct func(at int, predicted uint32) (uint32, error)
}

// next returns the right value for the next prediction.
func (c corrector) next(at int, predicted uint32) (uint32, error) {
	if *c.right > 0 {
		*c.right--
		return predicted, nil
	}
	return c.correct(at, predicted)
}

// newPredictor returns a predictor for words, and also for operands if moved is not nil.
func newPredictor(old, new image, moved *blockMap) *predictor {
	p := &predictor{old: old, new: new, words: newWords()}
	if moved != nil {
		p.operands = newOperands(moved)
	}
	return p
}

// forget clears what the predictor learned, at the beginning of a lap.
func (p *predictor) forget() {
	clear(p.words)
	if p.operands != nil {
		clear(p.operands.learned)
	}
}

// lap returns the number of the lap (see laps) in which a block begins.
func lap(b span, newSize int64) int64 { return b.new * laps / max(newSize, 1) }

// part replaces the predictable values of a part of a block by their corrected
// predictions.
func (p *predictor) part(part []byte, old, new int64, word, operand corrector) error {
	for done := int64(0); done < int64(len(part)); {
		from, n := p.old.at(old + done)
		to, k := p.new.at(new + done)
		n = min(n, k, int64(len(part))-done)
		piece := part[done : done+n]
		switch {
		case from == nil || to == nil || from.code != to.code:
		case !from.code:
			if err := p.words.correct(piece, old+done, int(done), word); err != nil {
				return err
			}
		case p.operands != nil:
			a, b := old+done-from.offset+from.address, new+done-to.offset+to.address
			if err := p.operands.correct(piece, a, b, int(done), operand); err != nil {
				return err
			}
		}
		done += n
	}
	return nil
}

// words predicts aligned words of four bytes in data: addresses and their lower halves, and offsets
// into tables. Functions and data that are close together move together. So words expects that a
// word grows by as much as the previous word of nearly the same value. For values that are not
// addresses, words learns that they do not change.
type words []grown

type grown struct {
	near uint32 // the value without its nearBits lowest bits, plus 1; 0 means that the slot is empty
	by   uint32
}

const (
	wordBits = 16
	nearBits = 10 // number of the value's lowest bits that are ignored
)

func newWords() words { return make(words, 1<<wordBits) }

func (w words) correct(data []byte, old int64, base int, word corrector) error {
	w = w[:1<<wordBits]
	right := *word.right // in a variable of this function, since the loop has millions of rounds
	for at := int(-old & 3); at+4 <= len(data); at += 4 {
		value := binary.LittleEndian.Uint32(data[at:])
		near := value>>nearBits + 1
		slot := &w[near*0x9e3779b1>>(32-wordBits)]
		if slot.near != near {
			*slot = grown{near: near}
		}
		actual := value + slot.by
		if right > 0 {
			right--
		} else {
			*word.right = 0
			var err error
			if actual, err = word.correct(base+at, actual); err != nil {
				return err
			}
			slot.by, right = actual-value, *word.right
		}
		binary.LittleEndian.PutUint32(data[at:], actual)
	}
	*word.right = right
	return nil
}

// operands predicts the new addresses in code from the block map. If an earlier prediction for the
// same target was wrong, it predicts the address to which that prediction was corrected.
type operands struct {
	moved   *blockMap
	scanner *scanner
	learned []learned
}

type learned struct {
	target int32 // the target's address plus 1; 0 means that the slot is empty
	moved  int32
}

func newOperands(moved *blockMap) *operands {
	return &operands{moved: moved, scanner: newScanner(moved.from), learned: make([]learned, 1<<learnedBits)}
}

func (p *operands) correct(code []byte, old, new int64, base int, operand corrector) error {
	for next := 0; ; {
		at, target, ok := p.scanner.next(code, next, old)
		if !ok {
			return nil
		}
		slot := &p.learned[uint32(target)*0x9e3779b1>>(32-learnedBits)]
		moved := p.moved.moved[target/granule]
		if slot.target == int32(target)+1 {
			moved = slot.moved
		}
		end := new + int64(at) + operandSize
		predicted := uint32(target + int64(moved) - end)
		actual, err := operand.next(base+at, predicted)
		if err != nil {
			return err
		}
		if actual != predicted {
			*slot = learned{target: int32(target) + 1, moved: int32(end + int64(int32(actual)) - target)}
		}
		binary.LittleEndian.PutUint32(code[at:], actual)
		next = at + operandSize
	}
}
