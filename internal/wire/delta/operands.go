package delta

import "encoding/binary"

const operandSize = 4

// scanner finds operands that hold addresses in x86-64 code: the targets of calls and jumps, and
// memory operands relative to rip. It does not disassemble: it looks for the bytes that precede
// such operands and checks that the operand points into the image. A false match costs a few bytes
// of the patch but cannot spoil the result, since Diff and Apply find the same false matches.
type scanner struct {
	kinds             [256]byte
	span              int64
	codeLow, codeHigh int64
}

const (
	plainByte = iota
	nearByte  // e8, e9: call, jmp
	escape    // the byte 0f; with a next byte of 80…8f, it is a conditional jump
	ripByte   // a ModRM byte for an operand relative to rip
)

func newScanner(m image) *scanner {
	s := &scanner{span: m.span, codeLow: m.codeLow, codeHigh: m.codeHigh}
	s.kinds[0xe8], s.kinds[0xe9], s.kinds[0x0f] = nearByte, nearByte, escape
	for reg := range 8 {
		s.kinds[reg<<3|5] = ripByte
	}
	return s
}

// next returns the position of the first operand in the code after the position `from`, and the
// address to which the operand refers. The first byte of the code is loaded at `address`. ok is
// false if there is no operand.
func (s *scanner) next(code []byte, from int, address int64) (at int, target int64, ok bool) {
	for i := from; i+operandSize < len(code); i++ {
		kind := s.kinds[code[i]]
		if kind == plainByte {
			continue
		}
		at := i + 1
		switch kind {
		case escape:
			if code[at]&0xf0 != 0x80 || at+1+operandSize > len(code) {
				continue
			}
			at++
		case ripByte:
			if i == 0 || !addressesMemory(code, i-1) {
				continue
			}
		}
		target := address + int64(at) + operandSize + int64(int32(binary.LittleEndian.Uint32(code[at:])))
		if kind == ripByte {
			if target >= 0 && target < s.span {
				return at, target, true
			}
		} else if target >= s.codeLow && target < s.codeHigh {
			return at, target, true
		}
	}
	return 0, 0, false
}

// addressesMemory reports whether the byte at i is an opcode that a ModRM byte
// follows.
func addressesMemory(code []byte, i int) bool {
	op := code[i]
	if i > 0 && code[i-1] == 0x0f {
		return true
	}
	switch {
	case op < 0x40:
		return op&7 < 4
	case op == 0x63, op == 0x69, op == 0x6b:
		return true
	case op >= 0x80 && op <= 0x8f:
		return true
	case op == 0xc0, op == 0xc1, op == 0xc6, op == 0xc7, op == 0xd1, op == 0xd3:
		return true
	case op == 0xf6, op == 0xf7, op == 0xfe, op == 0xff:
		return true
	}
	return false
}
