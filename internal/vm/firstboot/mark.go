package firstboot

import (
	"regexp"
	"strconv"
	"strings"
)

// State is the state that a mark reports.
type State string

const (
	Begun  State = "begin"
	Passed State = "ok"
	Failed State = "error"
	// Warned is a failure after which the machine is still usable.
	Warned State = "warn"
	// Sealed has the new password of the Administrator as its text, sealed with swdt's key.
	Sealed State = "sealed"
	// Exited ends the script: no other mark follows.
	Exited State = "exit"
)

// Mark is a line that the script has sent to the serial port. Any program in the guest can send
// such a line, so a mark is good for progress and messages, and proves nothing.
type Mark struct {
	Stage string // "" for Exited
	State State
	Code  int    // only for Exited; 0 means that all required stages have succeeded
	Text  string // printable ASCII of at most 400 characters, for people
}

const (
	// maxLine is how many bytes of a line ParseMark reads, since a guest may send lines without
	// end.
	maxLine = 4096
	// maxText is the length of a mark's text. common.ps1 cuts its texts at the same length.
	maxText = 400
)

var mark = regexp.MustCompile(
	`SWDT (?:stage=([a-z][a-z0-9-]{0,31}) (begin|ok|warn|error|sealed)|exit=([0-9]{1,3}))(?:$|[ \r\n])`)

// ParseMark returns the first mark in a line of the serial port; ok is false if the line has none.
// Any text may precede the mark, such as the rest of the firmware's output. Further marks in the
// line do not count, so that the text of an error cannot pretend to be a mark.
func ParseMark(line string) (m Mark, ok bool) {
	line = line[:min(len(line), maxLine)]
	at := mark.FindStringSubmatchIndex(line)
	if at == nil {
		return Mark{}, false
	}
	group := func(n int) string {
		if at[2*n] < 0 {
			return ""
		}
		return line[at[2*n]:at[2*n+1]]
	}
	m = Mark{Stage: group(1), State: State(group(2)), Text: printable(line[at[1]:])}
	if m.Stage == "" {
		m.State = Exited
		m.Code, _ = strconv.Atoi(group(3)) // up to three digits
	}
	return m, true
}

// printable returns the beginning of a text, with a question mark in place of each byte that is not
// printable ASCII.
func printable(text string) string {
	text = strings.TrimSpace(text)
	out := []byte(text[:min(len(text), maxText)])
	for n, c := range out {
		if c < ' ' || c > '~' {
			out[n] = '?'
		}
	}
	return string(out)
}
