package logline

import (
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// MarkSize is the size of the byte order mark of a text in UTF-16, in bytes.
const MarkSize = 2

// Wide is UTF-16, the encoding in which PowerShell 5.1 redirects output to files.
type Wide struct{ BigEndian bool }

// Mark returns the encoding of a text from its first bytes. ok is false if they are not a byte
// order mark of UTF-16, or if there are too few of them.
func Mark(first []byte) (w Wide, ok bool) {
	if len(first) < MarkSize {
		return Wide{}, false
	}
	switch [MarkSize]byte(first) {
	case [...]byte{0xff, 0xfe}:
		return Wide{}, true
	case [...]byte{0xfe, 0xff}:
		return Wide{BigEndian: true}, true
	}
	return Wide{}, false
}

// Narrow converts the text in `raw` to UTF-8. It returns its first parameter with the result
// appended, and the number of bytes of `raw` that it used. If `raw` ends between the two halves of
// a character, Narrow leaves that character for the next call, unless the parameter `all` is true.
func (w Wide) Narrow(to, raw []byte, all bool) (text []byte, used int) {
	unit := func(at int) rune {
		if w.BigEndian {
			return rune(raw[at])<<8 | rune(raw[at+1])
		}
		return rune(raw[at]) | rune(raw[at+1])<<8
	}
	for used+1 < len(raw) {
		r, size := unit(used), 2
		if r >= 0xd800 && r < 0xdc00 { // the first half of a character
			switch {
			case used+3 < len(raw):
				if r = utf16.DecodeRune(r, unit(used+2)); r != utf8.RuneError {
					size = 4
				}
			case !all:
				return to, used
			}
		}
		to = utf8.AppendRune(to, r) // a half without its partner becomes U+FFFD
		used += size
	}
	return to, used
}

// Length returns the length that a text in UTF-8 had in UTF-16, in bytes.
func (Wide) Length(text []byte) int64 {
	units := 0
	for _, r := range string(text) {
		units++
		if r > 0xffff {
			units++
		}
	}
	return int64(2 * units)
}

// Text reads a log from its beginning: it converts UTF-16 to UTF-8, and leaves
// any other log unchanged.
func Text(from io.Reader) io.Reader { return &reader{from: from} }

const (
	readerBlock = 32 << 10 // bytes of UTF-16
	widest      = 3        // maximum number of bytes of UTF-8 for two bytes of UTF-16
)

// reader reads a log and detects its encoding.
type reader struct {
	from  io.Reader
	known bool
	wide  *Wide  // nil if the log is not UTF-16
	raw   []byte // not decoded yet
	text  []byte // decoded, and not read yet
	err   error  // returned after the text
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if !r.known {
		r.recognise()
	}
	for len(r.text) == 0 && r.err == nil {
		if r.wide == nil {
			return r.from.Read(p)
		}
		r.decode()
	}
	n := copy(p, r.text)
	if r.text = r.text[n:]; n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, r.err
}

// recognise reads the byte order mark. A log without a mark is not converted.
func (r *reader) recognise() {
	r.known = true
	first := make([]byte, MarkSize)
	n, err := io.ReadFull(r.from, first)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	r.err = err
	if wide, ok := Mark(first[:n]); ok {
		r.wide = &wide
		return
	}
	r.text = first[:n]
}

// decode decodes the next block.
func (r *reader) decode() {
	if r.raw == nil {
		r.raw = make([]byte, 0, readerBlock)
	}
	n, err := r.from.Read(r.raw[len(r.raw):cap(r.raw)])
	raw := r.raw[:len(r.raw)+n]
	text, used := r.wide.Narrow(make([]byte, 0, len(raw)/2*widest), raw, err != nil)
	r.text, r.err = text, err
	r.raw = append(r.raw[:0], raw[used:]...)
}
