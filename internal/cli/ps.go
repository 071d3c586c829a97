package cli

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// psOptions are the flags of ps.
type psOptions struct {
	selection owners.Selection
	pod       string
	choice    rowFlags
	failOn    string
	watch     bool
	interval  time.Duration
}

// failOnOrphan is the --fail-on value for processes without an owner.
const failOnOrphan = "orphan"

func (a *app) psCommand() *cobra.Command {
	o := &psOptions{selection: owners.Selection{Remedies: a.remedies}}
	cmd := forNodes(&cobra.Command{
		Use:   "ps [flags]",
		Short: "List processes with the pod, service or container that owns them",
		Long: `Lists the processes of nodes by their owners: each pod with its shim, its pod
sandbox and its containers, the services of the node, and processes without an
owner:

  - a shim of a pod that the container runtime does not know
  - a program of the container runtime, or of a HostProcess container, whose
    parent has ended

With --watch on a terminal, the key s sorts by the next column, S reverses, /
filters, ? shows all keys and q quits.

CORES is the mean over a second, or with --watch over --interval. MEMORY is the
working set. A new shim is not called an orphan for its first 30 s, since its
pod may still be in the making.

The processes of a container are the process that the runtime names, its
children, and the processes of its session (with process isolation, each
container has a session of its own). The processes of a container with Hyper-V
isolation are in its virtual machine and not listed. If the container runtime
does not answer, pods are known by their shims alone.

With --fail-on orphan the exit code is 5 if there is an orphan.`,
		Example: examples(
			"ps", "",
			"ps --pod-pattern '^web' --sort memory", "",
			"ps --orphans --fail-on orphan", "a check",
			"ps --all --sort cpu --watch", "every process, as top shows them",
			"ps --filter calico", "only rows that contain calico",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runPs(cmd.Context(), o) },
	})
	flags := cmd.Flags()
	a.addNamespaceFlag(cmd, &o.selection.Namespace)
	flags.StringVar(&o.pod, podPattern, "", "only pods whose name matches this regular `expression`")
	o.choice.addFlags(cmd, "owner, part, number, program or image", owners.Columns())
	flags.BoolVar(&o.selection.All, "all", false, "every process, and containers that have ended")
	flags.BoolVar(&o.selection.Orphans, "orphans", false, "list only processes without an owner")
	flags.StringVar(&o.failOn, "fail-on", "", "`orphan`: exit code 5 if a process has no owner")
	flags.BoolVar(&o.watch, "watch", false, "refresh the list until Ctrl-C")
	flags.DurationVar(&o.interval, "interval", 2*time.Second, "`time` between two refreshes of --watch")
	must(cmd.RegisterFlagCompletionFunc(podPattern, a.completePodNames))
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{failOnOrphan},
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (o *psOptions) complete() (err error) {
	if o.pod != "" {
		if o.selection.Pod, err = regexp.Compile(o.pod); err != nil {
			return usagef("--%s: %v", podPattern, err)
		}
	}
	if err := o.choice.complete(owners.Columns()); err != nil {
		return err
	}
	o.selection.Choice = o.choice.Choice
	ofPods := o.selection.Namespace != "" || o.pod != ""
	switch {
	case o.failOn != "" && o.failOn != failOnOrphan:
		return usagef("--fail-on %s: use orphan", o.failOn)
	case o.selection.Orphans && (ofPods || o.selection.All):
		return usagef("--orphans lists processes without an owner: leave --pod-pattern, --namespace and --all out")
	case ofPods && o.selection.All:
		return usagef("--all also lists processes of no pod: leave --pod-pattern and --namespace out")
	case o.watch && o.failOn != "":
		return usagef("--watch has no end, but --fail-on sets the exit code at the end: use one of the two")
	case o.interval < 100*time.Millisecond:
		return usagef("--interval %s: use 100ms or more", o.interval)
	}
	return nil
}

func (a *app) runPs(ctx context.Context, o *psOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	if o.watch {
		return a.watchPs(ctx, s, o)
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (owners.Table, error) {
		r.Step("looking at the processes")
		table, err := owners.NewObserver(n, owners.Options{Pipe: doc.RuntimePipe()}).Observe(ctx)
		for _, gap := range table.Gaps {
			r.Warn("%s", gap)
		}
		return table, err
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := owners.NewReport(results, o.selection)
	if err := a.print(report, report.WriteText); err != nil || o.failOn == "" {
		return errors.Join(failed, err)
	}
	err = report.Check()
	var orphans *owners.OrphansError
	if errors.As(err, &orphans) {
		err = &exitError{code: exitFinding, err: err}
	}
	return errors.Join(failed, err)
}

// watchPs watches all nodes at the same time, until Ctrl-C or q.
func (a *app) watchPs(ctx context.Context, s *session, o *psOptions) error {
	w := &owners.Live{Selection: o.selection, Page: a.page()}
	switch {
	case !a.inText():
		records := a.records(a.streams.Out)
		w.Record = func(n owners.NodeReport) error { return records.write(n) }
	case a.canDraw(a.streams.Out):
		w.Screen = livetable.NewScreen(a.streams.Out)
		ctx, w.Keys = a.tableKeys(ctx, owners.Columns(), o.choice.Sort)
		defer w.Keys.End()
	}
	w.Begin(s.names())
	a.global.parallel = max(a.global.parallel, len(s.documents)) // no node waits until another node's watch ends
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (struct{},
		error) {
		return struct{}{}, w.Watch(ctx, n, doc.RuntimePipe(), o.interval, r)
	})
	return errors.Join(fleet.Failures(results), w.Keys.Quit())
}
