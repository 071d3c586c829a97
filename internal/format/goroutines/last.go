package goroutines

import "bytes"

// The marks that containerd writes around a dump.
const (
	beginMark = "=== BEGIN goroutine stack dump ==="
	endMark   = "=== END goroutine stack dump ==="
)

// Part is one dump of a text.
type Part struct {
	Text     []byte
	Number   int  // of the dump in the text, from 1; 0: the text has no marks, and Text is all of it
	Of       int  // how many dumps the text has
	Complete bool // the dump has its end, or the text has no marks
}

// Last returns the last complete dump of a text, such as a log of containerd, which gets one dump after another; or the last
// one if none is complete. Goroutines of several dumps must not be mixed: most of them are in each dump.
func Last(text []byte) Part {
	last := Part{Text: text, Complete: true}
	of := 0
	for rest, found := after(text); found; {
		of++
		next, more := after(rest[len(beginMark):])
		block := rest[:len(rest)-len(next)]
		if end := bytes.Index(block, []byte(endMark)); end >= 0 {
			last = Part{Text: block[:end+len(endMark)], Number: of, Complete: true}
		} else if last.Number == 0 || !last.Complete {
			last = Part{Text: block, Number: of}
		}
		rest, found = next, more
	}
	last.Of = of
	return last
}

// after returns the text from the first begin of a dump on; it is empty if there is none.
func after(text []byte) (rest []byte, found bool) {
	if at := bytes.Index(text, []byte(beginMark)); at >= 0 {
		return text[at:], true
	}
	return nil, false
}
