package pktmon

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/host"
)

// outputLimit is how much of what pktmon says is kept.
const outputLimit = 16 << 10

// monitor is the machine's packet monitor.
type monitor struct {
	processes host.Processes
	blind     bool // it has no `status`
}

// CommandError is a pktmon that ended with an exit code other than 0.
type CommandError struct {
	Args   []string
	Code   int
	Output string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("pktmon %s ended with exit code %d: %s", strings.Join(e.Args, " "), e.Code, strings.TrimSpace(e.Output))
}

func (m monitor) run(ctx context.Context, args ...string) (string, error) {
	var out limited
	code, err := m.processes.Run(ctx, host.Command{Path: Program, Args: args, Stdout: &out, Stderr: &out})
	text := strings.ReplaceAll(out.String(), "\x00", "") // of UTF-16, where it writes that
	if err == nil && code != 0 {
		err = &CommandError{Args: args, Code: code, Output: text}
	}
	return text, err
}

// status is what pktmon says of its session. Its words are in Windows' language;
// but where there is a session it tells about it, and else it has one line to say
// so.
func (m monitor) status(ctx context.Context) (text string, running bool, err error) {
	if m.blind {
		return "", false, nil
	}
	text, err = m.run(ctx, "status")
	return strings.TrimSpace(text), len(nonEmpty(text)) > 1, err
}

// filters are the lines of `filter list` that have a filter: they begin with its
// number, and go on with its name.
func (m monitor) filters(ctx context.Context) (ours, others []string, err error) {
	text, err := m.run(ctx, "filter", "list")
	for _, line := range nonEmpty(text) {
		fields := strings.Fields(line)
		if _, err := strconv.Atoi(fields[0]); err != nil || len(fields) < 2 {
			continue
		}
		if strings.HasPrefix(fields[1], FilterName) {
			ours = append(ours, line)
		} else {
			others = append(others, line)
		}
	}
	return ours, others, err
}

func nonEmpty(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// limited keeps the beginning of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := outputLimit - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
