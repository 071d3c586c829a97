package cli

import (
	"context"
	"errors"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/monitor"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) statsCommand() *cobra.Command {
	cmd := group("stats", "Compare reported CPU usage with actual CPU time",
		a.statsWatchCommand(), a.statsSoakCommand(), a.statsCompareCommand(), a.statsReportCommand(), a.statsServeCommand())
	cmd.Long = `Compares the CPU usage of containers that the container runtime and the kubelet
report with the rate computed from the counter of CPU time over 10 seconds and
more. It detects a reported 0 of a busy container, a rate that the counter does
not explain, and a stale one.`
	cmd.Example = examples(
		"stats watch", "as a live table",
		"stats watch --callers 2 --for 2m --fail-on zero,above", "exit code 5 if found",
		"stats watch --for 5m --record before.swdt", "for stats compare",
		"stats soak night.swdt", "what slowly grew in a recording of hours?",
	)
	return cmd
}

// statsOptions are the flags that the commands of stats share.
type statsOptions struct {
	sources   []string
	interval  time.Duration
	callers   int
	namespace string
	pod       string
	tolerance float64
	sandboxes bool
	cluster   clusterOptions

	wanted  []stats.Source
	podName *regexp.Regexp
	choice  rowFlags // of stats watch
	// levels is the time between two looks at what may slowly grow; 0: there are none.
	levels time.Duration
}

func (o *statsOptions) addFlags(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&o.sources, "source", []string{string(stats.CRI)}, "the `source`s that the values are read from: cri, summary, node")
	flags.DurationVar(&o.interval, "interval", time.Second, "`time` between two answers")
	flags.IntVar(&o.callers, "callers", 0, "`number` of other callers that ask at the same moments")
	a.addNamespaceFlag(cmd, &o.namespace)
	flags.StringVar(&o.pod, podPattern, "", "only pods whose name matches this regular `expression`")
	flags.Float64Var(&o.tolerance, "tolerance", stats.DefaultTolerance, "how far a rate may be off: 0.2 is 20 %")
	flags.BoolVar(&o.sandboxes, "sandboxes", false, "ask the runtime for whole pods too, which is one more call")
	o.cluster.addFlags(cmd)
	must(cmd.RegisterFlagCompletionFunc(podPattern, a.completePodNames))
	must(cmd.RegisterFlagCompletionFunc("source", cobra.FixedCompletions([]string{"cri", "summary", "node"},
		cobra.ShellCompDirectiveNoFileComp)))
}

func (o *statsOptions) complete() (err error) {
	if o.wanted, err = stats.ParseSources(o.sources); err != nil {
		return usagef("--source: %v", err)
	}
	if o.podName, err = regexp.Compile(o.pod); err != nil {
		return usagef("--%s: %v", podPattern, err)
	}
	switch {
	case len(o.wanted) == 0:
		return usagef("--source: name cri, summary or node")
	case o.interval < 10*time.Millisecond:
		return usagef("--interval %s: use 10ms or more", o.interval)
	case o.callers < 0 || o.callers > 1000:
		return usagef("--callers %d: use 0 to 1000", o.callers)
	case o.tolerance < 0:
		return usagef("--tolerance %g: use 0 or more", o.tolerance)
	}
	return nil
}

func (o *statsOptions) keep(c stats.Container) bool {
	return (o.namespace == "" || c.Namespace == o.namespace) && o.podName.MatchString(c.Pod) &&
		o.choice.Matches(c.Path())
}

func (o *statsOptions) meta() record.Meta {
	return record.Meta{
		Started: time.Now().UTC(), Interval: o.interval.String(), Callers: o.callers, Sources: o.wanted,
		Tolerance: o.tolerance,
	}
}

// watch returns the options of a watch that lasts for duration (0: until ctx ends).
func (o *statsOptions) watch(duration time.Duration) monitor.Options {
	return monitor.Options{
		Sources: o.wanted, Interval: o.interval, Callers: o.callers, Sandboxes: o.sandboxes, Keep: o.keep,
		For:     duration,
		Levels:  o.levels,
		Cluster: o.cluster.open,
	}
}

// observe watches all nodes for duration (0: until ctx ends).
func (a *app) observe(ctx context.Context, o *statsOptions, duration time.Duration, to monitor.Observer) error {
	to = monitor.OneAtATime(to)
	// The watch runs for hours beside other work, so low memory use matters more than speed.
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	if slices.Equal(o.wanted, []stats.Source{stats.Summary}) {
		ctx, cancel := a.global.bounded(ctx)
		defer cancel()
		err := monitor.Cluster(ctx, a.global.nodes, o.watch(duration), to)
		return explain(ctx, cutShort(ctx, duration, err))
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	// No node waits until another node's watch ends.
	s.app.global.parallel = max(s.app.global.parallel, len(s.documents))
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (struct{},
		error) {
		err := cutShort(ctx, duration, monitor.Node(ctx, n, doc, o.watch(duration), to, r))
		if errors.Is(err, monitor.ErrEnough) {
			enough()
			err = nil
		}
		return struct{}{}, err
	})
	return fleet.Failures(results)
}

// cutShort returns the error of a --timeout that ended a watch early, since the watch may have
// missed what it was meant to find. In any other case it returns err.
func cutShort(ctx context.Context, duration time.Duration, err error) error {
	var timeout *timeoutError
	if err == nil && duration > 0 && errors.As(context.Cause(ctx), &timeout) {
		return timeout
	}
	return err
}
