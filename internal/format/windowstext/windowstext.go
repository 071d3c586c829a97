// Package windowstext decodes text files that Windows' tools have written:
//
//   - PowerShell 5.1 writes UTF-16 with a byte order mark for > and Out-File, and UTF-8 with a mark for
//     Set-Content -Encoding UTF8; other tools write UTF-16 without a mark.
//   - Text that had CR LF already and was written in text mode has CR CR LF.
//   - A file that was being written when the machine lost its power ends in NUL characters, and COPY appends a
//     Ctrl-Z.
//
// Files that swdt itself reads are decoded with Decode. For files that another program reads, the verdict is that
// program's: Explain names the encoding if the program refuses the file, and Refuse if it cannot read it.
package windowstext

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// Encoding is how a file stores its characters.
type Encoding int

const (
	UTF8 Encoding = iota
	MarkedUTF8
	UTF16LE // with a byte order mark
	UTF16BE // with a byte order mark
	UnmarkedUTF16LE
	UnmarkedUTF16BE
	UTF32
)

const mark = "\ufeff"

// String returns the encoding's name for messages.
func (e Encoding) String() string {
	switch e {
	case MarkedUTF8:
		return "UTF-8 with a byte order mark"
	case UTF16LE:
		return "UTF-16 (little-endian)"
	case UTF16BE:
		return "UTF-16 (big-endian)"
	case UnmarkedUTF16LE:
		return "UTF-16 (little-endian) without a byte order mark"
	case UnmarkedUTF16BE:
		return "UTF-16 (big-endian) without a byte order mark"
	case UTF32:
		return "UTF-32"
	}
	return "UTF-8"
}

// Mark returns the bytes with which a file of this encoding begins, before its text.
func (e Encoding) Mark() string {
	switch e {
	case MarkedUTF8:
		return mark
	case UTF16LE:
		return "\xff\xfe"
	case UTF16BE:
		return "\xfe\xff"
	}
	return ""
}

// wide returns the codec of an encoding that is UTF-16, or nil.
func (e Encoding) wide() encoding.Encoding {
	switch e {
	case UTF16LE, UnmarkedUTF16LE:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case UTF16BE, UnmarkedUTF16BE:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

// Detect returns the encoding of a file. Without a mark, a file is UTF-16 if one byte of its first character is
// zero: every format that swdt reads begins with an ASCII character. A file in an 8-bit code page counts as UTF-8.
func Detect(file []byte) Encoding {
	switch {
	case bytes.HasPrefix(file, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(file, []byte("\x00\x00\xfe\xff")):
		return UTF32
	case bytes.HasPrefix(file, []byte(MarkedUTF8.Mark())):
		return MarkedUTF8
	case bytes.HasPrefix(file, []byte(UTF16LE.Mark())):
		return UTF16LE
	case bytes.HasPrefix(file, []byte(UTF16BE.Mark())):
		return UTF16BE
	case len(file) > 2 && file[0] != 0 && file[1] == 0 && file[2] != 0:
		return UnmarkedUTF16LE
	case len(file) > 1 && file[0] == 0 && file[1] != 0:
		return UnmarkedUTF16BE
	}
	return UTF8
}

// Text is the text of a file.
type Text struct {
	// Content is UTF-8 without a byte order mark and without NUL characters. Its lines end in LF.
	Content  string
	Encoding Encoding
	lineEnd  string // of the file's first line
	tail     bool   // NUL or Ctrl-Z characters follow the text
}

// Decode returns the text of a file. The error is an *Error.
func Decode(file []byte) (Text, error) {
	t := Text{Encoding: Detect(file)}
	all, err := t.Encoding.decode(file)
	if err != nil {
		return t, err
	}
	text, tailed := cutTail(all)
	switch at := strings.IndexByte(text, 0); {
	case tailed && text == "":
		return t, &Error{Encoding: t.Encoding, Line: 1, What: "with nothing but NUL characters"}
	case at >= 0:
		return t, &Error{Encoding: t.Encoding, Line: lineOf(text, at),
			What: "with a NUL character: a part of the file may have another encoding"}
	}
	t.tail, t.lineEnd, t.Content = tailed, lineEnd(text), unmarked(oneLineEnd(text))
	return t, nil
}

// Encode returns a file with this content, in the encoding of t and with its line ends. Lines of the content end in
// LF.
func (t Text) Encode(content string) []byte {
	if t.lineEnd != "" {
		content = strings.ReplaceAll(content, "\n", t.lineEnd)
	}
	return append([]byte(t.Encoding.Mark()), t.Encoding.encode(content)...)
}

// encode returns the bytes of a text, without a mark. Characters that the encoding lacks are replaced.
func (e Encoding) encode(text string) []byte {
	if wide := e.wide(); wide != nil {
		if encoded, err := wide.NewEncoder().Bytes([]byte(text)); err == nil {
			return encoded
		}
	}
	return []byte(text)
}

// decode returns the text of a file, with its NUL characters and line ends, but without its mark.
func (e Encoding) decode(file []byte) (string, error) {
	if e == UTF32 {
		return "", &Error{Encoding: e, Line: 1, What: "which swdt does not read"}
	}
	body := file[len(e.Mark()):]
	if e.wide() == nil {
		for at := 0; at < len(body); {
			r, size := utf8.DecodeRune(body[at:])
			if r == utf8.RuneError && size == 1 {
				return "", &Error{Encoding: e, Line: lineOf(string(body), at),
					What: fmt.Sprintf("with the byte %#x, which is of another encoding", body[at])}
			}
			at += size
		}
		return string(body), nil
	}
	text, err := e.wide().NewDecoder().String(string(body))
	if again := e.encode(text); err != nil || !bytes.Equal(again, body) { // the decoder replaces what is no character
		before, _ := e.wide().NewDecoder().String(string(body[:commonPrefix(again, body)&^1]))
		return "", &Error{Encoding: e, Line: lineOf(before, len(before)), What: "with an incomplete character"}
	}
	return text, nil
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// lineOf returns the number of the line in which the byte at this offset is, counted from 1.
func lineOf(text string, at int) int {
	return 1 + strings.Count(oneLineEnd(text[:at]), "\n")
}

// cutTail removes NUL characters and Ctrl-Z, with which COPY ends a text, from the end of a text. A tool may have
// written a line end after them.
func cutTail(all string) (text string, tailed bool) {
	const tail = "\x00\x1a"
	text = strings.TrimRight(all, "\r\n"+tail)
	switch {
	case !strings.ContainsAny(all[len(text):], tail):
		return all, false
	case text == "":
		return "", true
	}
	return text + "\n", true
}

func oneLineEnd(text string) string {
	return strings.NewReplacer("\r\r\n", "\n", "\r\n", "\n", "\r", "\n").Replace(text)
}

// lineEnd returns the end of the first line, or "" if the text has one line without an end.
func lineEnd(text string) string {
	begin := strings.IndexAny(text, "\r\n")
	if begin < 0 {
		return ""
	}
	for _, end := range []string{"\r\r\n", "\r\n"} {
		if strings.HasPrefix(text[begin:], end) {
			return end
		}
	}
	return text[begin : begin+1]
}

// unmarked removes byte order marks from the beginnings of lines, which appending one file to another leaves there.
func unmarked(text string) string {
	return strings.ReplaceAll(strings.TrimLeft(text, mark), "\n"+mark, "\n")
}
