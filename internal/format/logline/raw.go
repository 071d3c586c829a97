package logline

import (
	"bytes"
	"slices"
)

// EachText calls each for the lines in raw, one piece of a log between two newlines. That is one line,
// except that a run of NUL, which a crash of Windows leaves in a file, ends a line and belongs to none. It
// decodes UTF-16 without a mark: PowerShell 5.1 appends it to a file of any encoding, so that it begins
// anywhere.
func EachText(raw []byte, each func(line []byte)) {
	raw = bytes.TrimSuffix(raw, []byte("\n"))
	if bytes.IndexByte(raw, 0) < 0 {
		each(raw)
		return
	}
	if text, ok := unmarked(raw); ok {
		each(text)
		return
	}
	for text := range bytes.SplitSeq(raw, []byte{0}) {
		if len(bytes.TrimRight(text, "\r")) > 0 {
			each(text)
		}
	}
}

// Lines returns the lines of a text, without their endings; see EachText.
func Lines(text []byte) (lines []string) {
	for raw := range bytes.SplitAfterSeq(text, []byte("\n")) {
		if len(raw) > 0 {
			EachText(raw, func(line []byte) { lines = append(lines, string(bytes.TrimRight(line, "\r"))) })
		}
	}
	return lines
}

// unmarked decodes a line of UTF-16 without a mark. The newline before it was cut in two: its second byte, a NUL,
// is then the line's first. The same bytes are the line in the other byte order, as far as it is in Latin-1.
func unmarked(raw []byte) (text []byte, ok bool) {
	raw = bytes.TrimPrefix(bytes.TrimPrefix(raw, []byte{0}), []byte{0xff, 0xfe})
	units, wide := 0, 0
	for at := 0; at+1 < len(raw) && units < 16; at += 2 {
		if units++; raw[at] != 0 && raw[at+1] == 0 {
			wide++
		}
	}
	least := 2 + 2*(len(raw)%2) // half a character at the end is rare
	if 4*wide < 3*units || wide < least && string(raw) != "\r\x00" {
		return nil, false
	}
	text, _ = Wide{}.Narrow(make([]byte, 0, len(raw)), raw, true)
	return slices.DeleteFunc(text, func(c byte) bool { return c == 0 }), true
}
