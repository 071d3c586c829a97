package swap

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/commandline"
	"github.com/swdt-dev/swdt/internal/host"
)

// outdated reports whether the service runs another file than the one at the
// destination, whose info is given. The process may be one below the service's own,
// as under kube-log-runner.
//
// Windows lets an executable that runs be renamed, but not be written, replaced or
// removed. So a file that took its place is another file, and the one that runs has
// another name: Windows names a process by where its file is now (Wine and a file
// system that does not follow the rename by where it was). Files are compared by
// their ids, since a junction or a short name gives one file two paths.
//
// Where the process is still named by the destination, it is older than a file that
// was made or written after it began. NTFS's time of the last change is no sign: an
// archive bit that a backup clears or a new access list moves it. Neither is a file
// whose time is in the future: the clock was set back.
func (a *Answer) outdated(files host.Files, q Question, info host.FileInfo) bool {
	if a.Service.State != host.Running || a.Service.PID == 0 || a.Service.SharedProcess {
		return false
	}
	made := info.Created
	if info.Modified.After(made) {
		made = info.Modified
	}
	below := descendants(q.Processes, a.Service.PID)
	return slices.ContainsFunc(q.Processes, func(p host.Process) bool {
		switch {
		case !below[p.PID] || p.Image == "":
			return false
		case samePath(q.Destination, p.Image):
			return !p.Started.IsZero() && p.Started.Before(made) && !made.After(time.Now())
		case isBeside(q.Destination, p.Image) || startedAs(p, q.Destination):
			running, err := files.Stat(p.Image)
			return err == nil && running.ID != info.ID
		}
		return false
	})
}

// startedAs reports whether a process's command line begins with a path.
func startedAs(p host.Process, path string) bool {
	args := commandline.Split(p.CommandLine)
	return len(args) > 0 && samePath(path, args[0])
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
