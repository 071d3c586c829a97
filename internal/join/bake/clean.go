package bake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// removeTraces removes everything that must not be in the image, and checks that it is gone.
func (b *oven) removeTraces(ctx context.Context) error {
	for _, service := range []string{"kubelet", "kube-proxy", "containerd"} {
		if err := b.stop(ctx, service); err != nil {
			return err
		}
	}
	found, err := b.found(ctx)
	if err != nil {
		return err
	}
	for _, path := range found {
		b.reporter.Debug("removing %s", path)
		if err := b.remove(ctx, path); err != nil {
			return err
		}
	}
	left, err := b.found(ctx)
	switch {
	case err != nil:
		return err
	case len(left) > 0:
		return &LeftError{left}
	}
	if err := b.keepWantedKeys(ctx); err != nil {
		return err
	}
	if err := b.forgetLogon(ctx); err != nil {
		return err
	}
	b.trim(ctx)
	return b.clearEvents(ctx)
}

// LeftError reports files that must not be in an image and exist again after their removal.
type LeftError struct{ Files []string }

func (e *LeftError) Error() string {
	return fmt.Sprintf("these must not be in an image, and a program writes them again: %s; stop that program in the "+
		"base image", strings.Join(e.Files, ", "))
}

const stopLimit = time.Minute

func (b *oven) stop(ctx context.Context, service string) error {
	_, err := b.node.Services.Stop(ctx,
		&agentv1.StopServiceRequest{Name: service, Timeout: durationpb.New(stopLimit)})
	if err != nil && !errors.Is(err, fault.ErrNoService) && !errors.Is(err, fault.ErrServiceStopped) {
		return fmt.Errorf("stop the service %s: %w", service, err)
	}
	return nil
}

// found returns the paths of all traces on the machine.
func (b *oven) found(ctx context.Context) ([]string, error) {
	log := b.doc.Node.Spec.Kubernetes.Containerd.LogFile
	var paths []string
	for _, t := range b.options.traces(log[:max(strings.LastIndex(log, `\`), 0)]) {
		folders, err := b.folders(ctx, t.folder)
		if err != nil {
			return nil, err
		}
		for _, folder := range folders {
			entries, err := b.list(ctx, folder)
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				if t.named(strings.ToLower(nameOf(entry.GetPath()))) {
					paths = append(paths, entry.GetPath())
				}
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

func nameOf(path string) string { return path[strings.LastIndex(path, `\`)+1:] }

// folders returns the folders that path names. One name in path may be *, which stands for every
// folder at that place.
func (b *oven) folders(ctx context.Context, path string) ([]string, error) {
	before, after, several := strings.Cut(path, `\*\`)
	switch {
	case path == "":
		return nil, nil
	case !several:
		return []string{path}, nil
	}
	entries, err := b.list(ctx, before)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, entry := range entries {
		if entry.GetFolder() && !entry.GetLink() {
			folders = append(folders, entry.GetPath()+`\`+after)
		}
	}
	return folders, nil
}

// list returns the entries of a folder; none if it is missing.
func (b *oven) list(ctx context.Context, folder string) ([]*agentv1.FileInfo, error) {
	reply, err := b.node.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", folder, err)
	}
	return reply.GetEntries(), nil
}

const (
	// removeInterval is the pause between attempts to remove a file that a stopped service still
	// has open. busyLimit bounds these attempts.
	removeInterval = 500 * time.Millisecond
	busyLimit      = 10 * time.Second
)

func (b *oven) remove(ctx context.Context, path string) error {
	err := wait.Condition{
		Name: "the programs that use it to end", Interval: removeInterval, Limit: busyLimit,
		// Look ignores its own context, so that the limit does not interrupt a removal.
		Look: func(context.Context) error {
			_, err := b.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path, Recursive: true})
			if err == nil || errors.Is(err, fault.ErrNotExist) {
				return nil
			}
			return wait.StopIf(!fault.IsHeld(err), err)
		},
	}.Wait(ctx)
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// wantsKeys reports whether the node file wants keys that may log in to each machine of the image.
func (b *oven) wantsKeys() bool {
	wanted := b.doc.Node.Spec.Setup.OpenSSH
	return wanted != nil && len(wanted.AuthorizedKeys) > 0
}

// keepWantedKeys writes a new file of authorized keys, with only the keys of spec.setup.
func (b *oven) keepWantedKeys(ctx context.Context) error {
	if !b.wantsKeys() || b.options.KeepAuthorizedKeys {
		return nil
	}
	only := v1alpha1.Setup{OpenSSH: b.doc.Node.Spec.Setup.OpenSSH}
	_, err := b.run(ctx, setup.Steps(b.node, only, setup.Options{Resolve: b.doc.Resolve}), false)
	return err
}

// forgetLogon removes the password of an automatic logon.
func (b *oven) forgetLogon(ctx context.Context) error {
	for _, name := range []string{"DefaultPassword", "AutoAdminLogon", "AutoLogonCount"} {
		_, err := b.node.Registry.Delete(ctx, &agentv1.RegistryDeleteRequest{Key: winlogon, Name: name})
		if err != nil && !errors.Is(err, fault.ErrNotExist) {
			return fmt.Errorf("remove %s of the automatic logon: %w", name, err)
		}
	}
	return nil
}

// defrag is Windows' program for disks.
const defrag = `C:\Windows\System32\defrag.exe`

// trim gives the space of removed files back to the disk of your machine, so that the content of
// these files is not in the image. Windows does the same by itself, but later.
func (b *oven) trim(ctx context.Context) {
	b.reporter.Step("giving free space back")
	var out bytes.Buffer
	code, err := command.Run(ctx, b.node.Processes, &agentv1.RunCommand{Path: defrag, Args: []string{"C:", "/L"}},
		command.Streams{Stdout: command.LimitMemory(&out), Stderr: command.LimitMemory(&out)})
	if err == nil && code != 0 {
		err = &exitError{int(code), strings.TrimSpace(out.String())}
	}
	if err != nil {
		b.reporter.Warn("the free space of the image may have the content of removed files: %s C: /L: %v", defrag, err)
	}
}

// wevtutil is Windows' program for event logs.
const wevtutil = `C:\Windows\System32\wevtutil.exe`

// clearEvents clears all event logs. Windows refuses to clear some logs for debugging that were
// never enabled: clearEvents ignores this. For the four logs that every Windows has, a refusal is
// an error.
func (b *oven) clearEvents(ctx context.Context) error {
	channels, err := b.events(ctx, "el")
	if err != nil {
		return fmt.Errorf("list the event logs: %w", err)
	}
	b.reporter.Step("clearing the event logs")
	for channel := range strings.Lines(channels) {
		if channel = strings.TrimSpace(channel); channel == "" {
			continue
		}
		_, err := b.events(ctx, "cl", channel)
		var refused *exitError
		switch {
		case err == nil:
		case errors.As(err, &refused) && !slices.Contains([]string{"Application", "Security", "Setup", "System"}, channel):
			b.reporter.Debug("clear the event log %s: %v", channel, err)
		default:
			return fmt.Errorf("clear the event log %s: %w", channel, err)
		}
	}
	return nil
}

// exitError reports a program of Windows that failed.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d: %s", e.code, e.text) }

func (b *oven) events(ctx context.Context, args ...string) (string, error) {
	var out, errOut bytes.Buffer
	code, err := command.Run(ctx, b.node.Processes, &agentv1.RunCommand{Path: wevtutil, Args: args},
		command.Streams{Stdout: command.LimitMemory(&out), Stderr: command.LimitMemory(&errOut)})
	if err == nil && code != 0 {
		err = &exitError{int(code), strings.TrimSpace(errOut.String())}
	}
	return out.String(), err
}
