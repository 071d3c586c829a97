package golden

import "github.com/swdt-dev/swdt/internal/vm/install"

// Heard returns the marks in text that a guest sends in pieces of a size, and the bytes that are kept
// of it.
func Heard(text []byte, size int) (marks []install.Mark, kept int) {
	g := &guest{}
	for len(text) > 0 {
		n := min(size, len(text))
		g.hear(text[:n])
		kept = max(kept, len(g.line)+len(g.tail))
		text = text[n:]
	}
	return g.marks, kept
}

// ComputerName is computerName, for the fuzz test.
var ComputerName = computerName
