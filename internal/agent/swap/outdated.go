package swap

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// outdated reports whether the service runs another file than the file at the destination. The
// parameter `info` describes the file at the destination. The process that runs the file may be a
// descendant of the service's own process, as under kube-log-runner.
//
// Windows allows renaming a running executable, but not writing, replacing or removing it. So a
// swap puts another file at the destination, and gives the running file another name. As the image
// of a process, Windows reports the present path of the running file. (Wine, and Windows on a file
// system that does not track renames, report the old path.) Files are compared by their ids, since
// a junction or a short name gives one file two paths.
//
// If the image of the process is still the destination, the process is outdated if the file at the
// destination was created or written after the process began. NTFS's time of the last change is not
// used, since a new access list changes this time, and so does a backup that clears the archive
// bit. A file with a time in the future does not count as newer: the clock was set back.
func (i *inspection) outdated(info platform.FileInfo) bool {
	if i.service.State != platform.Running || i.service.PID == 0 || i.service.SharedProcess {
		return false
	}
	made := info.Created
	if info.Modified.After(made) {
		made = info.Modified
	}
	destination := i.question.GetDestination()
	below := descendants(i.processes, i.service.PID)
	return slices.ContainsFunc(i.processes, func(p platform.Process) bool {
		switch {
		case !below[p.PID] || p.Image == "":
			return false
		case samePath(destination, p.Image):
			return !p.Started.IsZero() && p.Started.Before(made) && !made.After(time.Now())
		case isBeside(destination, p.Image) || startedAs(p, destination):
			running, err := i.platform.Files.Stat(p.Image)
			return err == nil && running.ID != info.ID
		}
		return false
	})
}

// startedAs reports whether a process's command line begins with a path.
func startedAs(p platform.Process, path string) bool {
	args := commandline.Split(p.CommandLine)
	return len(args) > 0 && samePath(path, args[0])
}

// isBeside reports whether a transaction could have moved the destination's old binary to path: to
// the name for an undo or for a rollback, or out of the way.
func isBeside(destination, path string) bool {
	if samePath(layout.Undo(destination), path) || samePath(layout.Previous(destination), path) {
		return true
	}
	aside := layout.Aside(destination, "")
	end := len(aside)
	return len(path) > end && samePath(path[:end], aside) && !strings.ContainsAny(path[end:], `/\`)
}

// runBy returns those of all services whose command line contains a destination. It searches the
// running services, and the stopped service that has the destination's file name, without the extension, as
// its name. It skips services whose registration cannot be read, since the result only helps to
// find a misspelt name.
func runBy(ctx context.Context, services platform.Services, all []platform.ServiceStatus, destination string) (names []string) {
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

// mentions reports whether a command line contains a path as a whole. The beginning of a longer
// path does not count.
func mentions(commandLine, path string) bool {
	fold := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "/", `\`)) }
	commandLine, path = fold(commandLine), fold(path)
	for {
		_, rest, found := strings.Cut(commandLine, path)
		switch {
		case !found:
			return false
		case rest == "" || strings.ContainsRune("\" \t", rune(rest[0])):
			return true
		}
		commandLine = rest
	}
}
