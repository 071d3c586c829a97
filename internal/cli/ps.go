package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/tasks"
	"github.com/swdt-dev/swdt/internal/ui"
)

// psOptions are the flags of ps.
type psOptions struct {
	// remedies renders the commands of a text about a node.
	remedies func(node, text string) string

	namespace string
	pod       string
	choice    rowOptions
	all       bool
	orphans   bool
	failOn    string
	watch     bool
	interval  time.Duration

	podName *regexp.Regexp
}

// failOnOrphan is what ps fails on.
const failOnOrphan = "orphan"

func (a *app) psCommand() *cobra.Command {
	o := &psOptions{remedies: a.remedies}
	cmd := forNodes(&cobra.Command{
		Use:   "ps [flags]",
		Short: "Whose the node's processes are: pods, containers, shims, services, nobody's",
		Long: `Shows the processes of a node by whom they belong to: each pod with its shim, its
sandbox and its containers, the services of the node, and what belongs to nobody:

  - a shim of a pod that the container runtime does not know
  - a program of the container runtime, or of a HostProcess container, whose
    starter is gone

CORES is the mean over a second, or with --watch over --interval. MEMORY is the
working set. A shim that has just been started is not called an orphan for the
first 30 s, in which its pod may be being made.

A container's processes are the one that the runtime names, what that started,
and those of its session, which with process isolation is its own. The processes
of a container with Hyper-V isolation are in its virtual machine and not seen.
Where the container runtime does not answer, pods are what their shims say.

With --fail-on orphan it ends with exit code 5 where there is one.`,
		Example: examples(
			"ps", "",
			"ps --pod '^web' --sort memory", "",
			"ps --orphans --fail-on orphan", "a check",
			"ps --all --sort cpu --watch", "every process, as top shows them",
			"ps --filter calico", "what has calico in its owner, part, program or image",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runPs(cmd.Context(), o) },
	})
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "namespace", "", "only pods of this `namespace`")
	flags.StringVar(&o.pod, "pod", "", "only pods whose name matches this regular `expression`")
	o.choice.addFlags(cmd, "owner, part, number, program or image", columnNames(psColumns()))
	flags.BoolVar(&o.all, "all", false, "every process, and containers that have ended")
	flags.BoolVar(&o.orphans, "orphans", false, "only what belongs to nobody")
	flags.StringVar(&o.failOn, "fail-on", "", "`orphan`: exit code 5 where a process belongs to nobody")
	flags.BoolVarP(&o.watch, "watch", "w", false, "look again and again, until Ctrl-C")
	flags.DurationVar(&o.interval, "interval", 2*time.Second, "`time` between two looks of --watch")
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{failOnOrphan}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (o *psOptions) complete() (err error) {
	if o.podName, err = regexp.Compile(o.pod); err != nil {
		return usagef("--pod: %v", err)
	}
	if err := o.choice.complete(columnNames(psColumns())); err != nil {
		return err
	}
	ofPods := o.namespace != "" || o.pod != ""
	switch {
	case o.failOn != "" && o.failOn != failOnOrphan:
		return usagef("--fail-on %s: use orphan", o.failOn)
	case o.orphans && (ofPods || o.all):
		return usagef("--orphans shows what no pod has: leave --pod, --namespace and --all out")
	case ofPods && o.all:
		return usagef("--all shows what is of no pod too: leave --pod and --namespace out")
	case o.watch && o.failOn != "":
		return usagef("--watch has no end, and --fail-on is about one: use one of the two")
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
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (tasks.Table, error) {
		r.Step("looking at the processes")
		table, err := tasks.NewObserver(n, tasks.Options{Pipe: doc.RuntimePipe()}).Look(ctx)
		for _, gap := range table.Gaps {
			r.Warn("%s", gap)
		}
		return table, err
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	list := psList{Nodes: []psNode{}, options: o}
	for _, result := range results {
		list.Nodes = append(list.Nodes, newPsNode(result.Name(), result.Value, result.Err, o))
	}
	if err := a.print(list, list.text); err != nil {
		return err
	}
	return errors.Join(failed, o.finding(list))
}

// finding is the error of a check.
func (o *psOptions) finding(list psList) error {
	if o.failOn == "" {
		return nil
	}
	var found, unknown []string
	for _, n := range list.Nodes {
		if len(n.table.Orphans) > 0 {
			found = append(found, n.Name+": "+nobodys(len(n.table.Orphans)))
		}
		if len(n.table.Gaps) > 0 {
			unknown = append(unknown, n.Name)
		}
	}
	switch {
	case len(found) > 0:
		return &exitError{code: exitFinding, err: errors.New(strings.Join(found, "; "))}
	case len(unknown) > 0:
		return fmt.Errorf("%s: whether shims are orphaned cannot be told while the container runtime does not answer; `swdt status` shows it",
			strings.Join(unknown, ", "))
	}
	return nil
}

func nobodys(processes int) string {
	if processes == 1 {
		return "one process belongs to nobody"
	}
	return fmt.Sprintf("%d processes belong to nobody", processes)
}

// psList is the result of `swdt ps`.
type psList struct {
	Nodes []psNode `json:"nodes"`

	options *psOptions
}

// psNode is one node's table, as far as it was asked for.
type psNode struct {
	frame
	tasks.Table

	table tasks.Table // all of it
}

func newPsNode(name string, table tasks.Table, err error, o *psOptions) psNode {
	table.Pods, table.Services, table.Orphans, table.Others = orNone(table.Pods), orNone(table.Services), orNone(table.Orphans), orNone(table.Others)
	table.Unsettled, table.Gaps = orNone(table.Unsettled), orNone(table.Gaps)
	return psNode{frame: newFrame(name, resultOK, err), Table: o.shown(table), table: table}
}

// shown is the part of a table that was asked for.
func (o *psOptions) shown(t tasks.Table) tasks.Table {
	if !o.all {
		t.Others = []tasks.Process{}
	}
	if o.orphans {
		t.Pods, t.Services = []tasks.Pod{}, []tasks.Service{}
	}
	if o.namespace != "" || o.pod != "" {
		t.Services, t.Orphans, t.Unsettled = []tasks.Service{}, []tasks.Orphan{}, nil
		t.Pods = slices.DeleteFunc(slices.Clone(t.Pods), func(p tasks.Pod) bool {
			return o.namespace != "" && p.Namespace != o.namespace || !o.podName.MatchString(p.Name)
		})
	}
	return o.choice.filtered(t)
}

func (l psList) text(w *ui.Page) error {
	header := []string{"OWNER", "PART", "PID", "CORES", "MEMORY", "HANDLES", "UPTIME", "PROGRAM", "IMAGE"}
	several := len(l.Nodes) > 1
	if several {
		header = append([]string{"NODE"}, header...)
	}
	var rows [][]string
	for _, row := range l.rows() {
		cells := row.cells()
		if several {
			cells = append([]string{row.node}, cells...)
		}
		rows = append(rows, cells)
	}
	if err := ui.TableOr(w, l.nothing(), header, rows); err != nil {
		return err
	}
	return l.explain(w, several)
}

func (l psList) nothing() string {
	if l.options.orphans {
		return "no process belongs to nobody"
	}
	return "no such process"
}

// explain says of what belongs to nobody why, and how to be rid of it.
func (l psList) explain(w io.Writer, several bool) error {
	for _, n := range l.Nodes {
		listed := map[uint32]bool{}
		for _, o := range n.Orphans {
			listed[o.PID] = true
			if listed[o.ParentPID] { // it ends with that one
				continue
			}
			line := fmt.Sprintf("%d: %s", o.PID, o.Why)
			if o.Sandbox != "" {
				line += ", " + o.Sandbox
			}
			// Of this node alone: elsewhere the number is another process's.
			line += l.options.remedies(n.Name, fmt.Sprintf("; `swdt exec -- taskkill /F /T /PID %d` ends it", o.PID))
			if several {
				line = n.Name + ": " + line
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}
