package swap

import (
	"context"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/messages"
	"github.com/swdt-dev/swdt/internal/agent/internal/program"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/wrapper"
	"github.com/swdt-dev/swdt/internal/platform"
)

// inspectProgram finds the file that the service's process runs, and the file that its next start
// runs. They are two files if the service was registered again, or its file exchanged, while it ran.
func (i *inspection) inspectProgram(ctx context.Context, config platform.ServiceConfig) {
	command := program.Of(i.platform, config)
	i.state.Program = program.Message(command)
	starts := i.starts(config.CommandLine, command)
	i.state.Starts = i.image(ctx, starts, true)
	p := i.running(starts, len(command.Wrappers) == 0)
	// The SCM has started its own process, and its settings name the program behind a wrapper.
	if i.state.Running = i.image(ctx, p.Image, p.PID == i.service.PID || samePath(p.Image, starts)); i.state.Running != nil {
		i.state.Running.Pid, i.state.Running.Started = p.PID, messages.Timestamp(p.Started)
	}
}

// starts returns the path of the file that the service's next start runs; "": unknown.
func (i *inspection) starts(commandLine string, command wrapper.Command) string {
	destination := i.question.GetDestination()
	if i.isDestination(command.Program()) {
		return destination
	}
	// A wrapper of another kind has the program among its arguments, and a script in its text.
	for _, argument := range append(commandline.Split(commandLine), commandline.Split(command.Line)...) {
		if samePath(destination, argument) {
			return destination
		}
	}
	if mentions(command.Script, destination) {
		return destination
	}
	return command.Program()
}

// running returns the service's process, or the process below it, that runs its program; the zero
// Process: unknown. starts is the file that the next start runs, and native reports whether the
// service's own process runs it.
func (i *inspection) running(starts string, native bool) platform.Process {
	if i.service.State != platform.Running || i.service.PID == 0 || i.service.SharedProcess {
		return platform.Process{}
	}
	destination := i.question.GetDestination()
	below := descendants(i.processes, i.service.PID)
	for _, is := range []func(platform.Process) bool{
		func(p platform.Process) bool { return samePath(destination, p.Image) },
		func(p platform.Process) bool { return isBeside(destination, p.Image) || startedAs(p, destination) },
		func(p platform.Process) bool { return samePath(baseName(destination), baseName(p.Image)) },
		func(p platform.Process) bool { return samePath(starts, p.Image) },
		func(p platform.Process) bool { return native && p.PID == i.service.PID },
	} {
		for _, p := range i.processes {
			if below[p.PID] && p.Image != "" && is(p) {
				return p
			}
		}
	}
	return platform.Process{}
}

// isDestination reports whether a path leads to the file at the destination.
func (i *inspection) isDestination(path string) bool {
	return sameFile(i.platform.Files, i.question.GetDestination(), path)
}

// image returns a file that a service runs; nil if path is "". If it is not the file at the
// destination, the image has its hash, as far as it can be read, and if `registered` is set, its version.
// Only a program that the SCM starts, itself or by a wrapper's settings, is run for its version: others
// may be anyone's.
func (i *inspection) image(ctx context.Context, path string, registered bool) *agentv1.Image {
	if path == "" {
		return nil
	}
	image := &agentv1.Image{Path: path, Destination: i.isDestination(path)}
	if image.Destination {
		return image
	}
	sum, err := hashOrNothing(ctx, i.hashes, path)
	if err == nil && registered && sum != "" && isVersionOf(i.question.GetDestination(), path) {
		image.Version = i.version(ctx, path)
	}
	image.Sha256 = sum
	return image
}

// isVersionOf reports whether a file's name says that it is the program at the destination, so that it
// may be run for its version: an unknown program might do anything.
func isVersionOf(destination, path string) bool {
	return samePath(baseName(destination), baseName(path)) || isBeside(destination, path)
}
