package command

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// FailedError reports a program that ran and did not succeed. It keeps the whole
// output; only the text of Error is shortened.
type FailedError struct {
	Command  string // the command as a person would type it, without secrets
	ExitCode int
	Stdout   string
	Stderr   string
}

// shown is the largest number of output lines in the error's text.
const shown = 5

func (e *FailedError) Error() string {
	text := fmt.Sprintf("%s ended with exit code %s", e.Command, windowstext.ExitCode(e.ExitCode))
	output := e.Stderr
	if strings.TrimSpace(output) == "" {
		output = e.Stdout // many Windows programs write errors to stdout
	}
	if tail := lastLines(output, shown); tail != "" {
		text += ": " + tail
	}
	return text
}

// lastLines joins the last n lines that are not empty.
func lastLines(output string, n int) string {
	var lines []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
