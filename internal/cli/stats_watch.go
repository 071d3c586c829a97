package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/monitor"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
	"github.com/swdt-dev/swdt/internal/inspect/stats/soak"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// statsWatchOptions are the flags of stats watch.
type statsWatchOptions struct {
	statsOptions
	duration time.Duration
	failOn   []string
	record   string
	soak     bool

	fatal []stats.Verdict
}

// soakInterval is the time between two looks of --soak: each asks for the processes, the objects of HNS and the owners.
const soakInterval = time.Minute

// formatCSV is the CSV format of stats watch.
const formatCSV = "csv"

func (a *app) statsWatchCommand() *cobra.Command {
	var o statsWatchOptions
	cmd := forNodes(&cobra.Command{
		Use:   "watch [flags]",
		Short: "Compare reported CPU usage with actual CPU time",
		Long: `Asks for statistics every second and shows, for each container, the reported
cores (usageNanoCores), the cores computed from its counter of CPU time
(usageCoreNanoSeconds) over at least 10 s, and a verdict if the reported value
cannot be true. On a terminal it is a live table with keys (s sorts by the next
column, S reverses, / filters, ? shows all keys, q quits), otherwise a line for
each sample.

Sources (--source):

  cri      the container runtime's ListContainerStats
  summary  the kubelet's /stats/summary, through the API server; alone it needs
           no SSH and no node file: -n then names nodes of the cluster
  node     CPU time of the container's process, as the runtime names it

Verdicts (for --fail-on):

` + verdictsHelp() + `
--callers adds that many callers that ask at the same moments: the answers of
containerd 1.7 and newer depend on the other callers.

--soak also looks every minute at what may slowly grow: handles, threads and memory
of kubelet, containerd, kube-proxy, HNS and the shims, shims without a pod, pods,
containers and their committed memory, objects of HNS, images and snapshots, disk
and memory. At the end it prints the slope of each in an hour. With --record,
"stats soak" does so later. An answer needs 50 minutes, and a slope of 1 % an hour
some hours.

With --fail-on the exit code is 5 if a sample got one of the verdicts: at the
end of --for or, without --for, at the first such sample. It is also 5 if there
were too few samples for a verdict: zero needs 10 s of samples, wild and
disagree 20 s, stale 30 s. A shorter --for is refused.`,
		Example: examples(
			"stats watch", "",
			"stats watch --callers 2 --for 1m --fail-on zero", "does containerd report a wrong 0?",
			"stats watch --source cri,summary --pod-pattern '^cpulimit'", "with the kubelet's values",
			"stats watch --sort memory --filter calico", "",
			"stats watch --for 5m --record before.swdt", "for stats compare and stats report",
			"stats watch --soak --interval 30s --for 6h --record night.swdt", "what slowly grows?",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStatsWatch(cmd.Context(), o) },
	})
	o.addFlags(a, cmd)
	o.choice.addFlags(cmd, "NAMESPACE/POD/CONTAINER", monitor.Columns())
	cmd.Flags().DurationVar(&o.duration, "for", 0, "watch for this `time`, such as 2m (default until Ctrl-C)")
	cmd.Flags().StringSliceVar(&o.failOn, "fail-on", nil, "`verdicts` that make the exit code 5")
	cmd.Flags().StringVar(&o.record, "record", "", "`file` to append the samples to")
	cmd.Flags().BoolVar(&o.soak, "soak", false, "also look at what may slowly grow, and print its slopes at the end")
	must(cmd.MarkFlagFilename("record"))
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(stats.VerdictNames(stats.Verdicts()),
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func verdictsHelp() string {
	var b strings.Builder
	for _, rule := range stats.Rules() {
		fmt.Fprintf(&b, "  %-10s %s\n", rule.Verdict, rule.Means)
	}
	return b.String()
}

func (a *app) runStatsWatch(ctx context.Context, o statsWatchOptions) (err error) {
	if err := o.complete(); err != nil {
		return err
	}
	if err := o.choice.complete(monitor.Columns()); err != nil {
		return err
	}
	if o.fatal, err = stats.ParseVerdicts(o.failOn); err != nil {
		return usagef("--fail-on: %v", err)
	}
	if o.duration < 0 {
		return usagef("--for %s: use a positive time, such as 2m", o.duration)
	}
	if err := o.checkable(); err != nil {
		return err
	}
	if o.soak && slices.Equal(o.wanted, []stats.Source{stats.Summary}) {
		return usagef("--soak looks at the nodes themselves, which --source summary alone does not contact: add cri to --source")
	}
	ctx, keys := a.tableKeys(ctx, monitor.Columns(), o.choice.Sort)
	defer keys.End()
	show := &monitor.Show{
		Printer: a.statsPrinter(o, keys), Check: monitor.NewCheck(o.fatal), FirstFinding: o.duration == 0 &&
			len(o.fatal) > 0,
		Warn: func(text string) { fmt.Fprintln(a.streams.Err, ui.PrintableLines(text)) },
	}
	show.Begin(o.tolerance)
	if o.soak {
		show.Soak, o.levels = soak.NewSeries(), soakInterval
	}
	if o.record != "" {
		if show.Recorder, err = record.Create(o.record, o.meta()); err != nil {
			return err
		}
	}
	err = a.observe(ctx, &o.statsOptions, o.duration, show)
	keys.End() // from here on, the output is not a table
	err = errors.Join(err, show.End(a.page(), err == nil && a.inText()), keys.Quit())
	if err == nil && o.soak && a.inText() {
		err = a.writeSoak(show.Soak.Report())
	}
	if err != nil || len(o.fatal) == 0 {
		return err
	}
	err = show.Check.Result()
	var failed *monitor.FailedError
	if errors.As(err, &failed) {
		return &exitError{code: exitFinding, err: failed}
	}
	return err
}

func (a *app) statsPrinter(o statsWatchOptions, keys *livetable.Keys) monitor.Printer {
	switch {
	case a.format() == formatCSV:
		return monitor.NewCSV(a.streams.Out)
	case !a.inText():
		records := a.records(a.streams.Out)
		return monitor.NewRecords(func(s monitor.Sample) error { return records.write(s) })
	case a.canDraw(a.streams.Out):
		return monitor.NewTable(a.streams.Out, o.choice.Sort, keys)
	}
	return monitor.NewLines(a.page(), o.callers > 0)
}

// checkable rejects a check that could only pass: a check that ends before a rule has the samples
// that it needs, or a check of a source that no rule covers.
func (o *statsWatchOptions) checkable() error {
	if len(o.fatal) == 0 {
		return nil
	}
	if slices.Equal(o.wanted, []stats.Source{stats.Node}) {
		return usagef("--fail-on: the source node reports no rate, so it gets no verdicts; add cri or summary to " +
			"--source")
	}
	for _, v := range o.fatal {
		rule, _ := stats.RuleOf(v)
		// The first and the last answer may each be off by an interval, so require two more.
		if least := rule.Needs + 2*o.interval; o.duration > 0 && rule.Needs > 0 && o.duration < least {
			return usagef("--for %s is too short for --fail-on %s, which looks at %s of samples: use --for %s or more",
				o.duration, v, rule.Needs, least)
		}
	}
	return nil
}
