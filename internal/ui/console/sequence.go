package console

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
)

const (
	shiftOut = 0x0e
	shiftIn  = 0x0f
)

// allowedEscape reports whether a short sequence, without its ESC, may reach the terminal: saving and
// moving the cursor, tab stops, character sets, keypads. It excludes the choice of another encoding
// than UTF-8 (%), and the queries and memory locks that a console of Windows never sends.
func allowedEscape(sequence []byte) bool {
	switch len(sequence) {
	case 1:
		return bytes.ContainsAny(sequence, "78=>DEHM")
	case 2:
		return sequence[0] == '(' && bytes.ContainsAny(sequence[1:], "0AB") || string(sequence) == "#8"
	}
	return false
}

// Control sequences, without ESC [, that may reach the terminal, by their prefix and last byte. Those
// that are missing include windows (t), printers (i), keyboard modes (> m, > u), repetition (b), and
// all queries but c and n. The replies to these two have only numbers of the terminal itself.
const (
	plainControls   = "@ABCDEFGHIJKLMPSTXZ`acdefgmnrsu"
	privateControls = "JK" // after ?
)

// control appends the sequence to out, or the allowed part of it.
func (m *modes) control(out, sequence []byte) []byte {
	body, last := string(sequence[:len(sequence)-1]), sequence[len(sequence)-1]
	plain := strings.Trim(body, "0123456789;:") == ""
	private := !plain && body[0] == '?' && strings.Trim(body[1:], "0123456789;:") == ""
	allowed := false
	switch {
	case last == 'h' || last == 'l':
		return m.set(out, body, last)
	case plain:
		allowed = strings.IndexByte(plainControls, last) >= 0
	case private:
		allowed = strings.IndexByte(privateControls, last) >= 0
	case last == 'q':
		_, err := strconv.Atoi(strings.TrimSuffix(body, " "))
		allowed = strings.HasSuffix(body, " ") && err == nil
		m.cursor = m.cursor || allowed
	case last == 'p':
		allowed = body == "!"
	}
	if !allowed {
		return out
	}
	m.colour = m.colour || last == 'm'
	m.region = m.region || last == 'r'
	return append(append(out, esc, '['), sequence...)
}

// longestTitle bounds a window's title, in characters.
const longestTitle = 200

// command appends a command of the operating system to out if it sets the window's title. All other
// commands are dropped, such as those for the clipboard, colours, links, files and notifications. The
// title before is saved on the terminal's own stack.
func (m *modes) command(out, text []byte) []byte {
	kind, title, _ := strings.Cut(string(text), ";")
	if kind != "0" && kind != "2" {
		return out
	}
	if !m.title {
		m.title = true
		out = append(out, "\x1b[22;0t"...)
	}
	out = append(out, "\x1b]0;"...)
	left := longestTitle
	for _, r := range title {
		if unicode.IsPrint(r) && left > 0 {
			out = append(out, string(r)...)
			left--
		}
	}
	return append(out, bell)
}
