package windows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/host"
)

// A ToolError is a program of Windows that ended with a code that means
// failure. Nothing of what it printed is lost; Error shows what matters of it.
type ToolError struct {
	Path     string
	Args     []string
	ExitCode int
	Output   string // stdout and stderr in order
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("%s %s ended with exit code %d (%#x): %s",
		e.Path, strings.Join(e.Args, " "), e.ExitCode, uint32(e.ExitCode), e.summary())
}

// summary is what follows a line "Error: 0x800f081f", as dism.exe prints it
// before it names its log file, else the last line.
func (e *ToolError) summary() string {
	summary, isNext := "it printed nothing", false
	for line := range strings.FieldsFuncSeq(e.Output, func(r rune) bool { return r == '\r' || r == '\n' }) {
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		summary = text
		if isNext {
			break
		}
		isNext = strings.HasPrefix(text, "Error:")
	}
	return summary
}

// runTool runs a program of Windows and returns what it printed. A machine that
// lacks the program does not support what it is for.
func runTool(ctx context.Context, processes host.Processes, path string, args ...string) (output string, exitCode int, err error) {
	var printed bytes.Buffer
	exitCode, err = processes.Run(ctx, host.Command{Path: path, Args: args, Stdout: &printed, Stderr: &printed})
	if errors.Is(err, host.ErrNotExist) {
		return "", 0, fmt.Errorf("%s is missing: %w", path, host.ErrNotSupported)
	}
	return printed.String(), exitCode, err
}
