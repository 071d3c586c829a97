package ui

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable returns text as one line without anything that controls a terminal. It replaces
// these characters by Go escapes (\x1b, \u202e): characters that move the cursor, set the
// title, change colours or reverse the writing direction, and line ends. It replaces bytes
// that are not UTF-8 by U+FFFD.
func Printable(text string) string {
	return strings.ReplaceAll(PrintableLines(text), "\n", `\n`)
}

// PrintableLines is like Printable, but for text of several lines: it keeps the line ends,
// and turns each CR LF into an LF.
func PrintableLines(text string) string {
	if indexOdd([]byte(text)) == len(text) {
		return text
	}
	var out bytes.Buffer
	w := NewPrintableWriter(&out)
	_, _ = io.WriteString(w, text) // a Buffer returns no error
	_ = w.Flush()
	return out.String()
}

// obeyed reports whether a terminal obeys r as a control instead of displaying it. Such
// controls include Unicode's bidirectional ones, which make a terminal show text in another
// order.
func obeyed(r rune) bool {
	switch {
	case r < ' ':
		return r != '\n' && r != '\t'
	case r >= 0x7f && r < 0xa0: // DEL and the C1 controls; U+009B begins a sequence as ESC [ does
		return true
	}
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// PrintableWriter removes from text anything that controls a terminal: see PrintableLines.
// All text for people that may come from a node, a cluster or a file passes a
// PrintableWriter.
type PrintableWriter struct {
	w       io.Writer
	pending []byte // the start of an incomplete character, or a CR that an LF may follow
}

// NewPrintableWriter returns a PrintableWriter that writes to w.
func NewPrintableWriter(w io.Writer) *PrintableWriter { return &PrintableWriter{w: w} }

// Write writes data, except for the beginning of a character that the next call may
// complete.
func (p *PrintableWriter) Write(data []byte) (int, error) {
	text := data
	if len(p.pending) > 0 {
		text = append(p.pending, data...)
		p.pending = nil
	}
	odd := indexOdd(text)
	if odd == len(text) {
		_, err := p.w.Write(text)
		return p.writeResult(data, err)
	}
	clean := make([]byte, odd, len(text)+64)
	copy(clean, text)
	clean, rest := appendPrintable(clean, text[odd:])
	p.pending = bytes.Clone(rest)
	_, err := p.w.Write(clean)
	return p.writeResult(data, err)
}

func (p *PrintableWriter) writeResult(data []byte, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return len(data), nil
}

// Flush writes the bytes that Write held back.
func (p *PrintableWriter) Flush() error {
	if len(p.pending) == 0 {
		return nil
	}
	last := string(utf8.RuneError)
	if p.pending[0] == '\r' {
		last = `\r`
	}
	p.pending = nil
	_, err := io.WriteString(p.w, last)
	return err
}

// appendPrintable appends the printable form of text to clean and returns the result. It also
// returns the end of text if this end can only be converted after more text has arrived.
func appendPrintable(clean, text []byte) (whole, rest []byte) {
	for len(text) > 0 {
		plain := indexOdd(text)
		clean, text = append(clean, text[:plain]...), text[plain:]
		if len(text) == 0 || !utf8.FullRune(text) || len(text) == 1 && text[0] == '\r' {
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\r' && text[1] == '\n':
		case obeyed(r):
			clean = appendEscaped(clean, r)
		default:
			clean = utf8.AppendRune(clean, r)
		}
		text = text[size:]
	}
	return clean, text
}

// appendEscaped appends an escape for r. JSON text already escapes controls below U+0020.
// The escape of any other control is also valid in JSON (\u009b), so that JSON text stays
// valid.
func appendEscaped(clean []byte, r rune) []byte {
	if r >= 0x7f {
		return fmt.Appendf(clean, `\u%04x`, r)
	}
	quoted := strconv.QuoteRune(r)
	return append(clean, quoted[1:len(quoted)-1]...)
}

// indexOdd returns the offset of the first byte that may be neither plain text nor a line
// end. Such a byte is a control character, or begins a non-ASCII character, which must be
// decoded to distinguish it from a control. If there is no such byte, indexOdd returns the
// length of text.
func indexOdd(text []byte) int {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		if !plainWord(binary.LittleEndian.Uint64(text[i:])) {
			if at := indexOddByte(text[i : i+8]); at < 8 {
				return i + at
			}
		}
	}
	return i + indexOddByte(text[i:])
}

// plainWord reports whether eight bytes are certainly plain, and none of them is a line
// end.
func plainWord(w uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	control := (w - ' '*ones) &^ w // the top bit is set for each byte below a space
	beyond := (w + ones) | w       // the top bit is set for each byte from 0x7f on
	return (control|beyond)&tops == 0
}

func indexOddByte(text []byte) int {
	for i, c := range text {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return i
		}
	}
	return len(text)
}
