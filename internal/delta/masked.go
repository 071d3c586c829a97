package delta

// masked is a file of which some bytes count as zero when it is matched: the
// operands of its instructions, which change whenever anything moves.
type masked struct {
	data []byte
	mask bitmap
}

// word returns eight bytes, the masked ones as zero.
func (m masked) word(at int) uint64 {
	w := load64(m.data, at)
	if m.mask != nil {
		if b := m.mask.eight(at); b != 0 {
			w &^= spread(b)
		}
	}
	return w
}
