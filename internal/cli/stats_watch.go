package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/stats"
	"github.com/swdt-dev/swdt/internal/stats/record"
	"github.com/swdt-dev/swdt/internal/ui"
)

// statsWatchOptions are the flags of stats watch.
type statsWatchOptions struct {
	statsOptions
	duration time.Duration
	failOn   []string
	record   string

	fatal []stats.Verdict
}

// formatCSV is a format of stats watch.
const formatCSV = "csv"

func (a *app) statsWatchCommand() *cobra.Command {
	var o statsWatchOptions
	cmd := forNodes(&cobra.Command{
		Use:   "watch [flags]",
		Short: "Reported and computed cores, side by side, as they come",
		Long: `Asks for statistics every second and shows, for each container, the cores that
are reported (usageNanoCores), those computed from its counter of CPU time
(usageCoreNanoSeconds) over at least 10 s, and a verdict where what is reported
cannot be. On a terminal it is a live table, which --sort sorts, otherwise a line
for each sample.

Sources (--source):

  cri      the container runtime's ListContainerStats
  summary  the kubelet's /stats/summary, through the API server; alone it needs
           no SSH and no node file: -n then names nodes of the cluster
  node     CPU time of the process that the runtime names as the container's

Verdicts (for --fail-on):

` + verdictsHelp() + `
--callers asks with that many more at the same moments: what containerd 1.7 and
newer reports depends on who else asks.

With --fail-on it ends with exit code 5 if one of the verdicts was given, at the
end of --for or without --for at the first one, and also if no sample could have
got it: zero needs 10 s of samples, wild and disagree 20 s, stale 30 s. A shorter
--for is refused.`,
		Example: examples(
			"stats watch", "",
			"stats watch --callers 2 --for 1m --fail-on zero", "is this containerd one of those?",
			"stats watch --source cri,summary --pod '^cpulimit'", "and what the kubelet makes of it",
			"stats watch --sort memory --filter calico", "",
			"stats watch --for 5m --record before.swdt", "for stats compare and stats report",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStatsWatch(cmd.Context(), o) },
	})
	o.addFlags(cmd)
	o.choice.addFlags(cmd, "NAMESPACE/POD/CONTAINER", columnNames(statsColumns()))
	cmd.Flags().DurationVar(&o.duration, "for", 0, "watch for this `time`, such as 2m (default until Ctrl-C)")
	cmd.Flags().StringSliceVar(&o.failOn, "fail-on", nil, "`verdicts` that make the exit code 5")
	cmd.Flags().StringVar(&o.record, "record", "", "`file` to record to, behind what it holds")
	must(cmd.MarkFlagFilename("record"))
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(names(stats.Verdicts()), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func names(verdicts []stats.Verdict) []string {
	var all []string
	for _, v := range verdicts {
		all = append(all, string(v))
	}
	return all
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
	if err := o.choice.complete(columnNames(statsColumns())); err != nil {
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
	w := &statsWatch{
		options: o, follower: stats.NewFollower(o.tolerance), tally: stats.NewTally(),
		found: newFindings(o.fatal), printer: a.statsPrinter(o),
		say: func(text string) { fmt.Fprintln(a.streams.Err, ui.PrintableLines(text)) }, failing: map[string]bool{},
	}
	if o.record != "" {
		if w.recorder, err = record.Create(o.record, o.meta()); err != nil {
			return err
		}
	}
	err = a.observe(ctx, &o.statsOptions, o.duration, w)
	err = errors.Join(err, w.end(a.page(), err == nil && a.inText()))
	if err != nil || len(o.fatal) == 0 {
		return err
	}
	return w.found.result()
}

// checkable refuses a check that could only pass: one that ends before a rule has the
// samples that it needs, or asks a source that no rule is about.
func (o *statsWatchOptions) checkable() error {
	if len(o.fatal) == 0 {
		return nil
	}
	if slices.Equal(o.wanted, []stats.Source{stats.Node}) {
		return usagef("--fail-on: the source node reports no rate, so it gets no verdicts; add cri or summary to --source")
	}
	for _, v := range o.fatal {
		rule, _ := stats.RuleOf(v)
		// The first answer and the last may be an interval off.
		if least := rule.Needs + 2*o.interval; o.duration > 0 && rule.Needs > 0 && o.duration < least {
			return usagef("--for %s is too short for --fail-on %s, which looks at %s of samples: use --for %s or more", o.duration, v, rule.Needs, least)
		}
	}
	return nil
}

// statsWatch is a watch that a person looks at, or a file, or a check.
type statsWatch struct {
	options  statsWatchOptions
	follower *stats.Follower
	tally    *stats.Tally
	recorder *record.Writer
	printer  statsPrinter
	found    *findings
	say      func(string)
	failing  map[string]bool // by node and source
}

func (w *statsWatch) node(facts record.NodeFacts) error {
	if facts.Note != "" {
		w.say(facts.Name + ": " + facts.Note)
	}
	if w.recorder == nil {
		return nil
	}
	return w.recorder.AddNode(facts)
}

func (w *statsWatch) reading(r stats.Reading) error {
	if w.recorder != nil {
		if err := w.recorder.Add(r); err != nil {
			return err
		}
	}
	w.complain(r)
	rows := w.follower.Add(r)
	w.tally.Add(r, rows)
	w.found.add(r, rows)
	if err := w.printer.rows(r, rows); err != nil {
		return err
	}
	if w.options.duration == 0 && len(w.options.fatal) > 0 && w.found.any() {
		return errEnough
	}
	return nil
}

// complain of a source that fails, once each time it begins to. Other callers meet
// what the first one does.
func (w *statsWatch) complain(r stats.Reading) {
	if r.Caller != 0 {
		return
	}
	of := r.Node + ": " + string(r.Source)
	if failing := r.Err != ""; failing != w.failing[of] {
		w.failing[of] = failing
		if failing {
			w.say(fmt.Sprintf("warning: %s does not answer: %s", of, r.Err))
		}
	}
}

// end finishes the recording, and sums up where there is something to.
func (w *statsWatch) end(out io.Writer, summary bool) error {
	err := w.printer.end()
	if w.recorder != nil {
		err = errors.Join(err, w.recorder.Close())
	}
	if summary {
		err = errors.Join(err, writeSummaries(out, w.tally.Summaries()))
	}
	return err
}

func writeSummaries(out io.Writer, summaries []stats.SourceSummary) error {
	var rows [][]string
	for _, s := range summaries {
		rows = append(rows, []string{
			string(s.Source), fmt.Sprint(s.Containers), fmt.Sprint(s.Calls), fmt.Sprint(s.Samples), stats.Counts(s.Verdicts, "%d"),
			ratio(s.Ratio), latency(s.LatencySeconds.Median), latency(s.LatencySeconds.P95),
		})
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return ui.Table(out, []string{"SOURCE", "CONTAINERS", "ANSWERS", "SAMPLES", "VERDICTS", "REPORTED/COMPUTED", "LATENCY", "95 %"}, rows)
}

func ratio(d stats.Distribution) string {
	if d.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", d.Median, d.Min, d.Max)
}

func latency(seconds float64) string { return ui.Seconds(time.Duration(seconds * 1e9)) }
