package swap

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/agent/internal/program"
	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/format/servicelog"
	"github.com/swdt-dev/swdt/internal/platform"
)

const (
	logLines     = 10       // maximum number of log lines in the outcome of a failed component
	logTailBytes = 16 << 10 // maximum number of bytes of a log that are read to find its last lines
)

// logSizes returns the sizes of the services' logs by path, and their ids. Call it before the services
// are stopped.
func (t *transaction) logSizes(ctx context.Context, services []string) (map[string]int64, map[string]platform.FileID) {
	sizes, ids := map[string]int64{}, map[string]platform.FileID{}
	for _, service := range services {
		for _, path := range t.logFiles(ctx, service) {
			if info, err := t.Platform.Files.Stat(path); err == nil && !info.Folder {
				sizes[path], ids[path] = info.Size, info.ID
			}
		}
	}
	return sizes, ids
}

// logLines returns the last lines that a service logged since the transaction
// began; nil if its log is unknown or has no new lines.
func (t *transaction) logLines(ctx context.Context, service string) []string {
	for _, path := range t.logFiles(ctx, service) {
		info, err := t.Platform.Files.Stat(path)
		if err != nil || info.Folder {
			continue
		}
		var begin int64
		if b := t.journal.before(); b != nil && b.Logs[path] == info.ID && b.LogSizes[path] <= info.Size { // else it is a new log
			begin = b.LogSizes[path]
		}
		if lines := tail(t.Platform.Files, path, begin, info.Size); len(lines) > 0 {
			return lines
		}
	}
	return nil
}

func (t *transaction) logFiles(ctx context.Context, service string) []string {
	config, err := t.Platform.Services.Config(ctx, service)
	if err != nil {
		return nil
	}
	command := program.Of(t.Platform, config)
	return slices.Concat(command.Logs, servicelog.Configured(service, command.Line), servicelog.Paths(service, config.CommandLine))
}

// tail returns the last logLines lines of a file between the byte offsets `begin` and `end`, without stack traces. It
// returns nil if the file cannot be read.
func tail(files platform.Files, path string, begin, end int64) []string {
	f, err := files.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	torn := end-begin > logTailBytes // if so, the first line may be incomplete
	if torn {
		begin = end - logTailBytes
	}
	if _, err := f.Seek(begin, io.SeekStart); err != nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, end-begin))
	if err != nil || len(text) == 0 {
		return nil
	}
	if torn {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	lines := logline.WithoutStacks(logline.Lines(bytes.TrimRight(text, "\r\n\x00")))
	lines = lines[max(0, len(lines)-logLines):]
	for i := range lines {
		lines[i] = strings.ToValidUTF8(lines[i], "?")
	}
	return lines
}
