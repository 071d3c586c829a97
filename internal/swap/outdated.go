package swap

import (
	"context"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
)

// outdated reports whether the service still runs an older file than the one at
// the destination, which got its name at changed. The process may be one below
// the service's own, as under kube-log-runner. A file whose time is in the
// future says nothing: the clock was set back.
func (a *Answer) outdated(q Question, changed time.Time) bool {
	if a.Service.State != host.Running || a.Service.PID == 0 || a.Service.SharedProcess || changed.After(time.Now()) {
		return false
	}
	below := descendants(q.Processes, a.Service.PID)
	for _, p := range q.Processes {
		switch {
		case !below[p.PID] || p.Image == "":
		case isBeside(q.Destination, p.Image): // Windows names a process by where its file is now
			return true
		case samePath(q.Destination, p.Image) && !p.Started.IsZero() && p.Started.Before(changed):
			return true
		}
	}
	return false
}

// isBeside reports whether path is one that a transaction gives the destination's
// old binary.
func isBeside(destination, path string) bool {
	end := len(destination)
	return len(path) > end && samePath(path[:end], destination) && strings.HasPrefix(path[end:], ".swdt-")
}

// runBy names services that run the file at a destination, by their command
// lines: running ones, and the one that is called like the file. What cannot be
// read is left out: this only helps to find a misspelt name.
func runBy(ctx context.Context, services host.Services, destination string) (names []string) {
	all, err := services.List(ctx)
	if err != nil {
		return nil
	}
	stem, _, _ := strings.Cut(baseName(destination), ".")
	for _, s := range all {
		if s.PID == 0 && !strings.EqualFold(s.Name, stem) {
			continue
		}
		if config, err := services.Config(ctx, s.Name); err == nil && mentions(config.CommandLine, destination) {
			names = append(names, s.Name)
		}
	}
	return names
}

// mentions reports whether a command line has a path in it, whole.
func mentions(commandLine, path string) bool {
	fold := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "/", `\`)) }
	commandLine, path = fold(commandLine), fold(path)
	at := strings.Index(commandLine, path)
	if at < 0 {
		return false
	}
	rest := commandLine[at+len(path):]
	return rest == "" || rest[0] == '"' || rest[0] == ' '
}
