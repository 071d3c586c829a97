package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hang"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/proof/scale"
	"github.com/swdt-dev/swdt/internal/ui"
)

// dumpLimit bounds diag dump, unless --timeout does.
const dumpLimit = 30 * time.Second

type dumpOptions struct {
	cluster    clusterOptions
	metricsURL string
}

func (a *app) diagDumpCommand() *cobra.Command {
	o := &dumpOptions{}
	cmd := forNodes(&cobra.Command{
		Use:        "dump [flags]",
		Short:      "Show for what a node's programs wait",
		SuggestFor: []string{"stacks", "goroutines", "hang"},
		Long: `Reads the goroutines of containerd, of its shims, of kube-proxy and, with a
kubeconfig, of kubelet, and the calls that containerd's log shows as
unanswered. It asks Windows' service manager, HCS, HNS and containerd one
question each, with a deadline. Then it reports who waits for whom: the
operation, the pod, how long it has lasted at least, published defects that have
this form, and the remedy with the least harm. A dump has the goroutines' times
in whole minutes, so a new hang shows after a minute, or when its call in the log
is 20 seconds old.

Each program writes its own goroutines, which stops it for milliseconds:

  containerd   its event Global\stackdump-PID; the file that it writes is removed
  shims        the diagnostic service on their pipes
  kube-proxy   /debug/pprof beside its metrics, if its profiling is on
  kubelet      /debug/pprof through the API server

The whole takes 30 seconds at most (--timeout). It stores functions and states,
and drops all arguments. containerd also writes all its goroutines, with their
arguments, into its own log, which is read before. Nothing else stays on the
node, unless containerd is too slow: then its file stays, which only
administrators can open, and the next dump removes it.

The exit code is 5 if a program waits, and 1 if none is seen to wait but
containerd or a shim could not be read.`,
		Example: examples(
			"diag dump -n win-1", "",
			"diag dump --kubeconfig admin.conf", "with kubelet",
			"diag dump -o json >dump.json", "to send it, or to compare it later",
			"diag dump show dump.json", "read it again, without a node",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDiagDump(cmd.Context(), o) },
	})
	o.cluster.addFlags(cmd)
	cmd.Flags().StringVar(&o.metricsURL, "metrics-url", scale.DefaultMetricsURL, "`URL` of the proxy's metrics, on the node")
	addInOrder(cmd, a.diagDumpShowCommand())
	return cmd
}

func (a *app) runDiagDump(ctx context.Context, o *dumpOptions) error {
	if err := checkMetricsURL(o.metricsURL); err != nil {
		return err
	}
	if a.global.timeout == 0 {
		a.global.timeout = dumpLimit
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	found, err := a.optionalCluster(ctx, &o.cluster, s.story.Node(""), "kubelet is not asked")
	if err != nil {
		return err
	}
	s.quiet = true
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, _ ui.Reporter) (hang.Node, error) {
		options := hang.Options{Pipe: doc.RuntimePipe(), MetricsURL: o.metricsURL}
		if found != nil {
			options.Kubelet = func(ctx context.Context) (io.ReadCloser, error) {
				name, err := n.ObjectName(ctx, doc.Node.Spec.Kubernetes.Join)
				if err != nil {
					return nil, err
				}
				return found.KubeletGoroutines(ctx, name)
			}
		}
		return hang.Gather(ctx, n, options)
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := hang.NewReport(results, time.Now(), a.remediesFor)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return dumpResult(report)
}

// dumpResult returns the exit code of a dump: a wait is found even if not everything was read.
func dumpResult(r hang.Report) error {
	switch {
	case r.Waits():
		return &exitError{code: exitFinding}
	case r.Incomplete():
		return errors.New("look for what waits: containerd or a shim was not read, so it may wait; its row has the reason")
	}
	return nil
}

func (a *app) diagDumpShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show FILE [OTHER] [flags]",
		Short: "Show a saved dump, or what moved between two",
		Long: `Shows a dump that "swdt diag dump -o json" wrote, without a node. The waits are
computed anew from the goroutines in it. FILE may also be the goroutines of one
program as text: the file that containerd writes for its event, its log, or
/debug/pprof/goroutine?debug=2 of another program.

With OTHER, a later dump, it shows which waits did not move: the same goroutines
are in the same functions. It also shows how the numbers of goroutines, handles
and threads changed.

A dump may come from a stranger: it is bounded, secrets in it are redacted, and
nothing in it controls the terminal.

The exit code is 5 if a program waits, and 1 if none is seen to wait but
containerd or a shim was not read; with OTHER, it is 5 if a wait did not move.`,
		Example: examples(
			"diag dump show dump.json", "",
			"diag dump show containerd.4711.stacks.log", "",
			"diag dump show before.json after.json", "what moved in between",
		),
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(_ *cobra.Command, args []string) error { return a.runDiagDumpShow(args) },
	}
	cmd.ValidArgsFunction = completeFiles
	return cmd
}

func (a *app) runDiagDumpShow(files []string) error {
	first, err := hang.Open(files[0])
	if err != nil {
		return err
	}
	if len(files) == 1 {
		if err := a.print(first, first.WriteText); err != nil {
			return err
		}
		return dumpResult(first)
	}
	second, err := hang.Open(files[1])
	if err != nil {
		return err
	}
	c := hang.Compare(first, second)
	if len(c.Nodes) == 0 {
		return fmt.Errorf("compare %s with %s: they have no node in common; name two dumps of the same node, or two files with the "+
			"goroutines of the same program", files[0], files[1])
	}
	if err := a.print(c, c.WriteText); err != nil {
		return err
	}
	if c.Stuck() {
		return &exitError{code: exitFinding}
	}
	return nil
}
