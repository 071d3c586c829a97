package delta

// masked is a file in which some bytes count as zero for matching. These bytes are the operands of
// the file's instructions, which change whenever code or data moves.
type masked struct {
	data []byte
	mask bitmap
}

// word returns the eight bytes at a position, with the masked bytes as zero.
func (m masked) word(at int) uint64 {
	w := load64(m.data, at)
	if m.mask != nil {
		if b := m.mask.eight(at); b != 0 {
			w &^= spread(b)
		}
	}
	return w
}

// maskPiece is the number of bytes of a file that one worker scans at once. It is a multiple of
// eight, so that no two workers share a byte of the mask.
const maskPiece = 1 << 20

// operandMask returns a mask of a file. The bits of all bytes that are operands of code are set.
func operandMask(file []byte, m image, each func(n int, work func(i int))) bitmap {
	mask := newBitmap(len(file))
	s := newScanner(m)
	each(len(file)/maskPiece+1, func(i int) {
		from := i * maskPiece
		for end := min(from+maskPiece, len(file)); from < end; {
			section, n := m.at(int64(from))
			n = min(n, int64(end-from))
			if section != nil && section.code {
				s.mask(mask, file, from, int(n), int64(from)-section.offset+section.address)
			}
			from += int(n)
		}
	})
	return mask
}

func (s *scanner) mask(mask bitmap, file []byte, from, n int, address int64) {
	code := file[from : from+n]
	for next := 0; ; {
		at, _, ok := s.next(code, next, address)
		if !ok {
			return
		}
		mask.setFour(from + at)
		next = at + operandSize
	}
}
