package console

import (
	"slices"
	"strconv"
	"strings"
)

// modes are the changes that a node has made to the terminal, so that they can be undone.
type modes struct {
	changed                []int // private modes that are not as usual
	keypad, insert, region bool
	colour, charset        bool
	cursor, title          bool
}

// usualMode reports whether a private mode may be changed, and its usual state.
func usualMode(number int) (on, allowed bool) {
	switch number {
	case 7, 25: // wrapping, the cursor
		return true, true
	case 1, 12, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1048, 1049, 2004, 2026:
		// cursor keys, blinking, the alternate screen, the mouse, focus, marked pastes, synchronized drawing
		return false, true
	}
	return false, false // for example 9001, which sends keys in a form that only Windows knows
}

// set appends the allowed part of a sequence that sets modes (h) or resets them (l).
func (m *modes) set(out []byte, body string, last byte) []byte {
	if body == "4" {
		m.insert = last == 'h'
		return append(out, "\x1b[4"+string(last)...)
	}
	list, private := strings.CutPrefix(body, "?")
	if !private {
		return out
	}
	var kept []string
	for text := range strings.SplitSeq(list, ";") {
		number, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		if usual, allowed := usualMode(number); allowed {
			kept = append(kept, strconv.Itoa(number))
			m.changed = slices.DeleteFunc(m.changed, func(n int) bool { return n == number })
			if usual != (last == 'h') {
				m.changed = append(m.changed, number)
			}
		}
	}
	if len(kept) == 0 {
		return out
	}
	return append(out, "\x1b[?"+strings.Join(kept, ";")+string(last)...)
}

// escape notes a short sequence that was passed on.
func (m *modes) escape(sequence []byte) {
	switch sequence[0] {
	case '=':
		m.keypad = true
	case '>':
		m.keypad = false
	case '(':
		m.charset = m.charset || sequence[1] != 'B'
	}
}

// undo returns the sequences that put back what was changed.
func (m *modes) undo() []byte {
	var out strings.Builder
	for _, number := range slices.Backward(m.changed) {
		if usual, _ := usualMode(number); usual {
			out.WriteString("\x1b[?" + strconv.Itoa(number) + "h")
		} else {
			out.WriteString("\x1b[?" + strconv.Itoa(number) + "l")
		}
	}
	for _, change := range []struct {
		made bool
		undo string
	}{
		{m.keypad, "\x1b>"}, {m.insert, "\x1b[4l"}, {m.region, "\x1b7\x1b[r\x1b8"}, {m.charset, "\x0f\x1b(B"},
		{m.colour, "\x1b[0m"}, {m.cursor, "\x1b[0 q"}, {m.title, "\x1b[23;0t"},
	} {
		if change.made {
			out.WriteString(change.undo)
		}
	}
	return []byte(out.String())
}
