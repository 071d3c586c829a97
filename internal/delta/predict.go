package delta

import "encoding/binary"

const (
	// laps is how often what was learned is forgotten on the way through the new
	// file, so that the laps can be worked on side by side.
	laps = 8

	learnedBits = 15
)

// predictor says what addresses in code became when things moved: what the block
// map says, unless another place was seen for the same target since.
type predictor struct {
	old, new image
	moved    *blockMap
	scanner  *scanner
	learned  []learned
}

type learned struct {
	target int32 // from one
	moved  int32
}

func newPredictor(moved *blockMap) *predictor {
	return &predictor{old: moved.from, new: moved.to, moved: moved, scanner: newScanner(moved.from),
		learned: make([]learned, 1<<learnedBits)}
}

// forget begins a lap.
func (p *predictor) forget() { clear(p.learned) }

// lap returns in which lap a block is.
func lap(b span, newSize int64) int64 { return b.new * laps / max(newSize, 1) }

// operands replaces the operands in a part of a block by predictions, and those by
// what correct makes of them. It is the same walk for who makes a patch and who
// applies it: all that it depends on is in the old file, the blocks and the images.
func (p *predictor) operands(part []byte, old, new int64, correct func(at int, predicted uint32) (uint32, error)) error {
	for done := int64(0); done < int64(len(part)); {
		from, n := p.old.at(old + done)
		to, k := p.new.at(new + done)
		n = min(n, k, int64(len(part))-done)
		if from != nil && to != nil && from.code && to.code {
			code := part[done : done+n]
			a, b := old+done-from.offset+from.address, new+done-to.offset+to.address
			if err := p.piece(code, a, b, int(done), correct); err != nil {
				return err
			}
		}
		done += n
	}
	return nil
}

func (p *predictor) piece(code []byte, old, new int64, base int, correct func(at int, predicted uint32) (uint32, error)) error {
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
		actual, err := correct(base+at, predicted)
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
