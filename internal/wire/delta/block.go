package delta

// block means that n bytes of the new file, from position new, are made from the n bytes of the old
// file at position old. Bytes of the new file between blocks are literals.
type block struct {
	new, old, n int
}

func (b block) newEnd() int       { return b.new + b.n }
func (b block) oldEnd() int       { return b.old + b.n }
func (b block) displacement() int { return b.old - b.new }

func (b block) span() span {
	return span{new: int64(b.new), old: int64(b.old), n: int64(b.n)}
}
