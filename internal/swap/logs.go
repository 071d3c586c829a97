package swap

import (
	"context"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/host"
)

const (
	logLines     = 10       // of a service that failed
	logTailBytes = 16 << 10 // that are read for them
)

// logSizes notes how long the services' logs are before they are stopped.
func (t *transaction) logSizes(ctx context.Context, services []string) map[string]int64 {
	sizes := map[string]int64{}
	for _, service := range services {
		for _, path := range t.logFiles(ctx, service) {
			if info, err := t.Host.Files.Stat(path); err == nil && !info.Folder {
				sizes[path] = info.Size
			}
		}
	}
	return sizes
}

// logLines are the last lines that a service wrote since the transaction began;
// nil where its log is not known or says nothing new.
func (t *transaction) logLines(ctx context.Context, service string) []string {
	for _, path := range t.logFiles(ctx, service) {
		info, err := t.Host.Files.Stat(path)
		if err != nil || info.Folder {
			continue
		}
		var begin int64
		if b := t.journal.before(); b != nil && b.LogSizes[path] <= info.Size { // else: it was rotated
			begin = b.LogSizes[path]
		}
		if lines := tail(t.Host.Files, path, begin, info.Size); len(lines) > 0 {
			return lines
		}
	}
	return nil
}

func (t *transaction) logFiles(ctx context.Context, service string) []string {
	config, err := t.Host.Services.Config(ctx, service)
	if err != nil {
		return nil
	}
	return logFiles(service, config.CommandLine)
}

// LogFiles are where a service may log, the likeliest first.
func LogFiles(service, commandLine string) []string { return logFiles(service, commandLine) }

// logFiles are where a service may log: as its command line says, then where the
// usual installers put it.
func logFiles(service, commandLine string) []string {
	var paths []string
	fields := splitCommandLine(commandLine)
	for i, field := range fields {
		name, value, ok := strings.Cut(strings.TrimLeft(field, "-"), "=")
		if !ok && i+1 < len(fields) {
			value = fields[i+1]
		}
		switch strings.ReplaceAll(name, "_", "-") {
		case "log-file":
			paths = append(paths, value)
		case "log-dir":
			paths = append(paths, value+`\`+service+".INFO", value+`\`+service+".exe.INFO")
		}
	}
	for _, folder := range []string{`C:\var\log\` + service, `C:\var\log`, `C:\k\logs`} {
		paths = append(paths, folder+`\`+service+".log", folder+`\`+service+".err.log")
	}
	return paths
}

// splitCommandLine splits at spaces outside of double quotes.
func splitCommandLine(line string) []string {
	var fields []string
	var field strings.Builder
	quoted := false
	for _, r := range line {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			if field.Len() > 0 {
				fields = append(fields, field.String())
				field.Reset()
			}
		default:
			field.WriteRune(r)
		}
	}
	if field.Len() > 0 {
		fields = append(fields, field.String())
	}
	return fields
}

// tail returns the last lines between begin and end, offsets in bytes.
func tail(files host.Files, path string, begin, end int64) []string {
	f, err := files.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	torn := end-begin > logTailBytes // the first line then is not whole
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
	lines := strings.Split(strings.TrimRight(string(text), "\r\n"), "\n")
	if torn {
		lines = lines[1:]
	}
	lines = lines[max(0, len(lines)-logLines):]
	for i := range lines {
		lines[i] = strings.ToValidUTF8(strings.TrimRight(lines[i], "\r"), "?")
	}
	return lines
}
