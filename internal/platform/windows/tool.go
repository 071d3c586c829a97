package windows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// A ToolError reports that a Windows program ended with an exit code that means
// failure. It keeps the whole output; Error prints the relevant part.
type ToolError struct {
	Path     string
	Args     []string
	ExitCode int
	Output   string // stdout and stderr in order of arrival
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("%s %s ended with exit code %d (%#x): %s",
		e.Path, strings.Join(e.Args, " "), e.ExitCode, uint32(e.ExitCode), e.summary())
}

// summary returns the line after "Error: 0x800f081f". dism.exe prints this line
// before it names its log file. If there is no such line, summary returns the
// last line.
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

// runTool runs a Windows program and returns its output. If the machine lacks
// the program, the error is fault.ErrNotSupported.
func runTool(ctx context.Context, processes platform.Processes, path string,
	args ...string) (output string, exitCode int, err error) {
	var printed bytes.Buffer
	exitCode, err = processes.Run(ctx, platform.Command{Path: path, Args: args, Stdout: &printed, Stderr: &printed})
	if errors.Is(err, fault.ErrNotExist) {
		return "", 0, fmt.Errorf("%s is missing: %w", path, fault.ErrNotSupported)
	}
	return printed.String(), exitCode, err
}
