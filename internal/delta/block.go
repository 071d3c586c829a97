package delta

// block says that n bytes at new are made from those at old. What lies between
// blocks is literal.
type block struct {
	new, old, n int
}

func (b block) newEnd() int       { return b.new + b.n }
func (b block) oldEnd() int       { return b.old + b.n }
func (b block) displacement() int { return b.old - b.new }

func (b block) span() span {
	return span{new: int64(b.new), old: int64(b.old), n: int64(b.n)}
}
