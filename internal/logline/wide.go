package logline

import (
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// MarkSize is how many bytes in front of a text in UTF-16 say that it is one.
const MarkSize = 2

// Wide is a text in UTF-16, as PowerShell 5.1 writes files that are redirected to.
type Wide struct{ BigEndian bool }

// Mark is how a text that begins so is written; false where it is not UTF-16, or
// where too little is there to tell.
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

// Narrow appends raw as UTF-8 and says how much of it was used: half of a character
// waits for the other one, unless this is all.
func (w Wide) Narrow(to, raw []byte, all bool) (text []byte, used int) {
	unit := func(at int) rune {
		if w.BigEndian {
			return rune(raw[at])<<8 | rune(raw[at+1])
		}
		return rune(raw[at]) | rune(raw[at+1])<<8
	}
	for used+1 < len(raw) {
		r, size := unit(used), 2
		if r >= 0xd800 && r < 0xdc00 { // the first half
			switch {
			case used+3 < len(raw):
				if r = utf16.DecodeRune(r, unit(used+2)); r != utf8.RuneError {
					size = 4
				}
			case !all:
				return to, used
			}
		}
		to = utf8.AppendRune(to, r) // half a character alone is none
		used += size
	}
	return to, used
}

// Length is how many bytes of UTF-16 a text in UTF-8 was.
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

// Text reads a log from its beginning: one in UTF-16 as UTF-8, and any other as it
// is.
func Text(from io.Reader) io.Reader { return &reader{from: from} }

const (
	readerBlock = 32 << 10 // bytes of UTF-16
	widest      = 3        // bytes that two become at most
)

// reader is a log of which it is found out how it is written.
type reader struct {
	from  io.Reader
	known bool
	wide  *Wide  // nil: it is not UTF-16
	raw   []byte // not decoded yet
	text  []byte // decoded, and not read yet
	err   error  // behind the text
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

// recognise reads the mark; what is none is text.
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

// decode makes text of the next block.
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
