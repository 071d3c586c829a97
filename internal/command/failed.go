package command

import (
	"fmt"
	"strings"
)

// FailedError is a program that ran and did not succeed. It keeps everything;
// only its text is shortened.
type FailedError struct {
	Command  string // as a person would type it, without anything secret
	ExitCode int
	Stdout   string
	Stderr   string
}

// shown is how many lines of output the text has.
const shown = 5

func (e *FailedError) Error() string {
	text := fmt.Sprintf("%s ended with exit code %d", e.Command, e.ExitCode)
	output := e.Stderr
	if strings.TrimSpace(output) == "" {
		output = e.Stdout // Windows programs like to complain there
	}
	if tail := lastLines(output, shown); tail != "" {
		text += ": " + tail
	}
	return text
}

// lastLines joins the last lines that say something.
func lastLines(output string, n int) string {
	var lines []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
