package push

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// change is the change that the push must make to a component.
type change int

const (
	changeNone    change = iota
	changeSkipped        // the file differs, but overwrite is false
	changeStart          // same binary; its stopped service is started before the transaction
	changeRestart        // same binary; its service is restarted
	changeBinary
	changeCreate
)

// changes reports whether the transaction has a part for the component.
func (c change) changes() bool { return c >= changeRestart }

// swaps reports whether the transaction puts another file at the destination.
func (c change) swaps() bool { return c >= changeBinary }

func (c change) action() Action {
	return [...]Action{ActionUnchanged, ActionSkipped, ActionStarted, ActionRestarted, ActionReplaced, ActionCreated}[c]
}

// difference is a component with the change that decide has chosen for it.
type difference struct {
	seen
	binary      source.Binary
	change      change
	commandLine string // the command line to register; empty: the present command line stays
}

// differences are the decisions about all components of a push.
type differences []*difference

// needed reports whether the push must change the node.
func (all differences) needed() bool {
	return slices.ContainsFunc(all, func(d *difference) bool { return d.change.changes() })
}

// decideAll compares each component with its binary.
func (w *work) decideAll(now view, binaries []source.Binary, services []string) (differences, error) {
	var all differences
	for i, c := range now.components {
		if err := c.fail(binaries[i].For(now.facts.GetArchitecture())); err != nil {
			return nil, err
		}
		if err := c.fail(w.checkProgram(c, services)); err != nil {
			return nil, err
		}
		d, err := c.decide(binaries[i], now.traces, w.options.Force)
		if err == nil && d.change == changeSkipped && w.options.RefuseSkips {
			err = &ProtectedError{Path: c.spec.Destination}
		}
		if err != nil {
			return nil, c.fail(err)
		}
		if d.change.changes() && !(c.isStopped() && (w.options.Start || w.options.Registers)) {
			c.addMessage(c.notStarted())
		}
		if err := c.fail(w.checkVersionInPlace(d)); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// decide compares the wanted state of the component with its state on the node.
func (c seen) decide(binary source.Binary, traces tracerecord.Record, force bool) (*difference, error) {
	if err := c.usable(binary); err != nil {
		return nil, err
	}
	commandLine, err := c.newCommandLine(traces)
	if err != nil {
		return nil, err
	}
	d := &difference{seen: c, binary: binary, commandLine: commandLine}
	same := c.state.GetExists() && c.state.GetSha256() == binary.SHA256
	switch {
	case !c.state.GetExists():
		d.change = changeCreate
	case !same && c.spec.Overwrite != nil && !*c.spec.Overwrite:
		d.change = changeSkipped
		c.result.SHA256 = c.state.GetSha256()
		c.addMessage("the file on the node differs, and overwrite is false")
	case !same:
		d.change = changeBinary
	case commandLine != "":
		d.change = changeRestart
		c.addMessage("the service's arguments change")
	case c.state.GetOutdated():
		d.change = changeRestart
		c.addMessage("its process was older than the file")
	case force && c.state.GetService() != nil:
		d.change = changeRestart
	}
	if d.change == changeSkipped && c.state.GetOutdated() {
		c.addMessage("its process is older than that file, and is not restarted either")
	}
	return d, nil
}

// usable returns an error if the destination cannot be replaced.
func (c seen) usable(binary source.Binary) error {
	if c.state.GetFolder() {
		file := path.Base(strings.ReplaceAll(binary.Path, `\`, "/"))
		return fmt.Errorf("%s is a folder on the node: destination must name the file, such as %s\\%s",
			c.spec.Destination, strings.TrimRight(c.spec.Destination, `\`), file)
	}
	if text := c.state.GetError(); text != "" {
		return fmt.Errorf("look at %s on the node: %s", c.spec.Destination, text)
	}
	return nil
}

// newCommandLine returns the command line to register for the component's service; empty: the
// present one stays.
func (c seen) newCommandLine(traces tracerecord.Record) (string, error) {
	if c.spec.Args == nil || c.state.GetService() == nil {
		return "", nil
	}
	registered, traced := traces.CommandLine(c.spec.RunBy(), c.state.GetServiceConfig().GetCommandLine())
	wanted, err := withArgs(registered, c.spec.Destination, c.spec.Args)
	if err != nil || wanted == registered {
		return "", err
	}
	if traced {
		return "", traces.Refuse(c.spec.RunBy(), "its command line")
	}
	return wanted, nil
}

// checkDependencies reports a component's dependsOn services that the node does not have:
// such a name is probably a mistake, and the component would then be started without waiting
// for the intended service.
func (w *work) checkDependencies(ctx context.Context, all differences) error {
	if !all.needed() {
		return nil
	}
	for _, c := range all {
		for _, name := range c.spec.DependsOn {
			if all.haveService(name) {
				continue
			}
			_, err := w.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
			switch {
			case errors.Is(err, fault.ErrNoService):
				text := fmt.Sprintf("dependsOn names %s, but the node has no such service: correct the name, or remove it", name)
				w.reporter.Warn("%s: %s", c.spec.Name, text)
				c.addMessage(text)
			case err != nil:
				return fmt.Errorf("look at the service %s, which %s is to wait for: %w", name, c.spec.Name, err)
			}
		}
	}
	return nil
}

// haveService reports whether the push has a component of this name, and the node has the service
// of that component.
func (all differences) haveService(name string) bool {
	return slices.ContainsFunc(all, func(d *difference) bool {
		return strings.EqualFold(d.spec.RunBy(), name) && d.state.GetService() != nil
	})
}
