package pktmon

import (
	"context"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
)

// outputLimit is how much of pktmon's output is kept, in bytes.
const outputLimit = 16 << 10

// monitor is the machine's packet monitor.
type monitor struct {
	processes platform.Processes
	blind     bool // pktmon has no `status` command
}

func (m monitor) run(ctx context.Context, args ...string) (string, error) {
	out := bounded.Head{Most: outputLimit}
	code, err := m.processes.Run(ctx, platform.Command{Path: captureplan.Program, Args: args,
		Stdout: &out, Stderr: &out})
	text := strings.ReplaceAll(out.String(), "\x00", "") // some versions print UTF-16, which contains zero bytes
	if err == nil && code != 0 {
		err = &captureplan.CommandError{Args: args, Code: code, Output: text}
	}
	return text, err
}

// status returns pktmon's report of its session. The text is in Windows'
// language, so only its length is examined: it is a single line if there is no
// session, and longer if there is one.
func (m monitor) status(ctx context.Context) (text string, running bool, err error) {
	if m.blind {
		return "", false, nil
	}
	text, err = m.run(ctx, "status")
	return strings.TrimSpace(text), len(nonEmpty(text)) > 1, err
}

// filters returns the lines of `filter list` that describe a filter. Such a
// line begins with the filter's number, followed by its name.
func (m monitor) filters(ctx context.Context) (ours, others []string, err error) {
	text, err := m.run(ctx, "filter", "list")
	for _, line := range nonEmpty(text) {
		fields := strings.Fields(line)
		if _, err := strconv.Atoi(fields[0]); err != nil || len(fields) < 2 {
			continue
		}
		if strings.HasPrefix(fields[1], captureplan.FilterName) {
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
