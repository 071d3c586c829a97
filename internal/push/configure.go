package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// Settings are other settings of a component's service.
type Settings struct {
	// CommandLine is the service's new command line; "": the present one stays. Registered is the command line that it
	// replaces: if the service has another one by then, nothing is changed.
	CommandLine, Registered string
	// Files are the files that the service reads when it starts.
	Files []Companion
	// Message describes the changes, for the component's result.
	Message string
}

func (s Settings) isEmpty() bool { return s.CommandLine == "" && len(s.Files) == 0 }

// Configure gives the service of a component other settings, in one transaction that restarts it: its files and its
// command line change together while it is stopped, and an undo restores both. Binaries stay. Configure returns the same
// errors as Push; settings without a change change nothing.
func Configure(ctx context.Context, n *node.Node, doc config.Document, name string, s Settings, options Options,
	r ui.Reporter) (NodeResult, error) {
	if options.Holder == "" {
		options.Holder = plan.Holder("configure")
	}
	options.Companions = func(context.Context, map[string]string) ([]Companion, error) { return s.Files, nil }
	w := newWork(n, doc, options, r)
	err := w.configure(ctx, name, s)
	if back := (*RolledBackError)(nil); errors.As(err, &back) {
		back.Settings = true
	}
	return w.finish(err)
}

func (w *work) configure(ctx context.Context, name string, s Settings) error {
	if err := w.choose([]string{name}); err != nil {
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
	c := now.components[0]
	changed, err := w.decideSettings(ctx, c, s)
	if err != nil {
		return c.fail(err)
	}
	all := differences{changed.difference}
	if w.options.DryRun || !all.needed() {
		w.planned(all)
		return nil
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	w.parts.begin(partStage)
	files := &staging{components: []*staged{changed}}
	err = w.stageCompanions(ctx, files)
	if err == nil {
		err = w.swapInCluster(ctx, files)
	}
	w.unstage(ctx, files, err)
	return err
}

// decideSettings plans the change of a component's settings.
func (w *work) decideSettings(ctx context.Context, c seen, s Settings) (*staged, error) {
	if c.state.GetService() == nil {
		return nil, programErrorf("there is no service %s on the node", c.spec.RunBy())
	}
	changed := &staged{difference: &difference{seen: c}}
	c.spec.Version, c.result.Version.Wanted = "", ""
	c.result.SHA256, c.result.Version.After = c.state.GetSha256(), c.state.GetVersion()
	c.addMessage(s.Message)
	if s.isEmpty() {
		return changed, nil
	}
	changed.change = changeRestart
	c.addMessage(c.notStarted())
	if s.CommandLine == "" || s.CommandLine == s.Registered {
		return changed, nil
	}
	registered := c.state.GetServiceConfig().GetCommandLine()
	if registered != s.Registered {
		return nil, fmt.Errorf("the command line of service %s has changed since swdt read it: run the command again",
			c.spec.RunBy())
	}
	traces, err := tracerecord.Load(ctx, func(ctx context.Context, path string) ([]byte, error) {
		return smallfile.Read(ctx, w.node, path)
	})
	if err != nil {
		return nil, err
	}
	if _, traced := traces.CommandLine(c.spec.RunBy(), registered); traced {
		return nil, traces.Refuse(c.spec.RunBy(), "its command line")
	}
	changed.commandLine = s.CommandLine
	return changed, nil
}
