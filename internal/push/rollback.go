package push

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// Former is the part of a component that a push replaces, as it was before the push.
type Former struct {
	Name string `json:"name"`
	// SHA256 is the hash of the binary; "": the binary is not replaced, or there was none.
	SHA256 string `json:"sha256,omitempty"`
	// CommandLine is the command line of the service; "": it is not replaced.
	CommandLine string `json:"commandLine,omitempty"`
}

// replaced returns what the transaction has replaced and a rollback can restore.
func (s *staging) replaced() []Former {
	var all []Former
	for _, c := range s.components {
		f := Former{Name: c.spec.Name}
		if c.change == changeBinary {
			f.SHA256 = c.state.GetSha256()
		}
		if c.commandLine != "" && c.change != changeCreate {
			f.CommandLine = c.state.GetServiceConfig().GetCommandLine()
		}
		restarted := c.change == changeRestart && len(s.companions) > 0
		if f.SHA256 != "" || f.CommandLine != "" || restarted {
			all = append(all, f)
		}
	}
	return all
}

// former returns the components that the push is about to change.
func (all differences) former() []Former {
	var changing []Former
	for _, d := range all {
		f := Former{Name: d.spec.Name}
		if d.change.swaps() {
			f.SHA256 = d.state.GetSha256()
		}
		if d.commandLine != "" {
			f.CommandLine = d.state.GetServiceConfig().GetCommandLine()
		}
		if f.SHA256 != "" || f.CommandLine != "" {
			changing = append(changing, f)
		}
	}
	return changing
}

// Rollback restores the previous binaries of the named components in one transaction. The node has
// kept these binaries. It now keeps the replaced binaries instead, so that a second rollback undoes
// the first. Command lines stay. Rollback returns the same errors as Push.
func Rollback(ctx context.Context, n *node.Node, doc config.Document, names []string, options Options,
	r ui.Reporter) (NodeResult, error) {
	w := newRollback(n, doc, options, r)
	return w.finish(w.rollback(ctx, names))
}

// Restore is a Rollback that restores no more than a push has replaced: the previous binary of each component with a
// SHA256, and the command line of each with a CommandLine, unless the service no longer has the arguments of the node
// file.
func Restore(ctx context.Context, n *node.Node, doc config.Document, replaced []Former, options Options,
	r ui.Reporter) (NodeResult, error) {
	w := newRollback(n, doc, options, r)
	return w.finish(w.restore(ctx, replaced))
}

func newRollback(n *node.Node, doc config.Document, options Options, r ui.Reporter) *work {
	if options.Holder == "" {
		options.Holder = plan.Holder("rollback")
	}
	return newWork(n, doc, options, r)
}

func (w *work) rollback(ctx context.Context, names []string) error {
	return w.goBack(ctx, names, func(_ view, c seen) (*staged, error) { return c.decideRollback() })
}

func (w *work) restore(ctx context.Context, replaced []Former) error {
	names, byName := make([]string, len(replaced)), map[string]Former{}
	for i, f := range replaced {
		names[i], byName[strings.ToLower(f.Name)] = f.Name, f
	}
	return w.goBack(ctx, names, func(now view, c seen) (*staged, error) {
		return c.decideRestore(byName[strings.ToLower(c.spec.Name)], now.traces)
	})
}

// goBack carries out the decisions about the named components in one transaction, after it has started the services that
// are to be started.
func (w *work) goBack(ctx context.Context, names []string, decide func(view, seen) (*staged, error)) error {
	if len(names) == 0 {
		return errors.New("no component is named")
	}
	if err := w.choose(names); err != nil {
		return err
	}
	w.look()
	now, err := w.inspect(ctx)
	if err != nil {
		return err
	}
	defer w.unlock(ctx)
	if now, err = w.settlePending(ctx, now); err != nil {
		return err
	}
	kept := &staging{companions: w.companions}
	var all differences
	for _, c := range now.components {
		back, err := decide(now, c)
		if err != nil {
			return c.fail(err)
		}
		if len(w.companions) > 0 && c.state.GetService() != nil { // the service reads them when it starts
			back.change = max(back.change, changeRestart)
		}
		kept.components, all = append(kept.components, back), append(all, back.difference)
	}
	starts := all.toStart()
	if !all.needed() && len(starts) == 0 || w.options.DryRun {
		w.planned(all)
		return nil
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	if err := w.startFirst(ctx, starts); err != nil || !all.needed() {
		return err
	}
	sent, err := w.sendBack(ctx, kept)
	if err == nil {
		err = w.swap(ctx, kept)
	}
	sent.handedOver = kept.handedOver
	w.unstage(ctx, sent, err)
	return err
}

// sendBack sends the files that only your machine keeps, and returns their components.
func (w *work) sendBack(ctx context.Context, kept *staging) (*staging, error) {
	sent := &staging{}
	for _, c := range kept.components {
		if !c.change.swaps() || c.binary.Path == "" {
			continue
		}
		w.parts.begin(partStage)
		sent.components = append(sent.components, c)
		if err := c.fail(w.send(ctx, c)); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// decideRollback plans the return to the previous binary. The previous binary takes the place of a
// staged file: the node has it already, and keeps it if the transaction does not begin. The node
// file's arguments and version belong to the present binary, so decideRollback ignores them.
func (c seen) decideRollback() (*staged, error) {
	switch {
	case c.state.GetFolder():
		return nil, fmt.Errorf("%s is a folder on the node", c.spec.Destination)
	case c.state.GetPreviousSha256() == "":
		return nil, errors.New("the node keeps no previous binary: swdt has not replaced it yet, or it was rolled back " +
			"already")
	case c.state.GetError() != "":
		return nil, fmt.Errorf("look at %s on the node: %s", c.spec.Destination, c.state.GetError())
	}
	back := &staged{
		difference: &difference{seen: c}, path: layout.Previous(c.spec.Destination), sha256: c.state.GetPreviousSha256(),
	}
	c.result.SHA256 = back.sha256
	c.spec.Version, c.result.Version.Wanted = "", ""
	c.result.Version.After = c.state.GetPreviousVersion()
	switch {
	case !c.state.GetExists():
		back.change = changeCreate
	case c.state.GetSha256() == back.sha256:
		back.change = changeNone
		c.addMessage("the previous binary is the same as the present one")
	default:
		back.change = changeBinary
	}
	return back, nil
}

// decideRestore plans the return to what a push has replaced.
func (c seen) decideRestore(replaced Former, traces tracerecord.Record) (*staged, error) {
	back := &staged{difference: &difference{seen: c}}
	if replaced.SHA256 != "" {
		var err error
		if back, err = c.decideRollback(); err != nil {
			return nil, err
		}
	} else {
		c.result.SHA256, c.result.Version.After = c.state.GetSha256(), c.state.GetVersion()
	}
	if replaced.CommandLine == "" || c.state.GetService() == nil {
		return back, nil
	}
	another, err := c.newCommandLine(traces)
	if err != nil || another != "" { // the arguments are no longer those of the push, so they stay
		return back, nil
	}
	present, traced := traces.CommandLine(c.spec.RunBy(), c.state.GetServiceConfig().GetCommandLine())
	switch {
	case present == replaced.CommandLine:
	case traced:
		return nil, traces.Refuse(c.spec.RunBy(), "its command line")
	default:
		back.commandLine = replaced.CommandLine
		back.change = max(back.change, changeRestart)
		c.addMessage("the service's arguments change")
	}
	return back, nil
}
