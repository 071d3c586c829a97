package cli

import (
	"bytes"
	"encoding/binary"
)

// verbatim is whether lines need not be looked at before they are printed: of a
// log on its own, nothing but their text is shown.
func (p *logPrinter) verbatim() bool {
	return !p.json && !p.colour && !p.timestamps && !p.nodes && !p.sources
}

// raw prints whole lines. Nearly always all of them are plain text, and go out in
// one piece; a line that is not is made printable by itself.
func (p *logPrinter) raw(text []byte) error {
	for len(text) > 0 {
		bad := indexOdd(text)
		begin := bytes.LastIndexByte(text[:bad], '\n') + 1
		if _, err := p.out.Write(text[:begin]); err != nil || bad == len(text) {
			return err
		}
		text = text[begin:]
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line = text[:end+1]
		}
		text = text[len(line):]
		clean := printable(string(bytes.ToValidUTF8(bytes.TrimRight(line, "\r\n"), []byte("�"))))
		if _, err := p.out.WriteString(clean + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// indexOdd is where something stands that may not be plain text and an end of a
// line: a control character, or the beginning of a letter beyond ASCII, which only
// a look at the line tells from what is none. It is the length where all is plain.
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

// plainWord is whether eight letters are certainly plain, none of them the end of a
// line.
func plainWord(w uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	control := (w - ' '*ones) &^ w // its top bits: of bytes below a space
	beyond := (w + ones) | w       // its top bits: of bytes of 0x7f and more
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
