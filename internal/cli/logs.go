package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/ui"
)

// defaultTail is how many lines of each log are shown if no flag selects any.
const defaultTail = 100

// selection holds the flags that select lines or events.
type selection struct {
	follow     bool
	since      string
	until      string
	tail       int
	grep       string
	level      string
	timestamps bool
}

func (o *selection) addFlags(cmd *cobra.Command, lines string) {
	flags := cmd.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "go on with new "+lines+", until Ctrl-C")
	flags.StringVar(&o.since, "since", "", "only "+lines+" from this `time` on: 10m, 2h, or 2026-11-20T14:00:00Z")
	flags.StringVar(&o.until, "until", "", "only "+lines+" up to this `time`, written as with --since")
	flags.IntVar(&o.tail, "tail", defaultTail, "the last `N` "+
		lines+" of each; -1 for all (default 100, all with --since)")
	flags.Lookup("tail").DefValue = "0"
	flags.StringVar(&o.grep, "grep",
		"", "only "+lines+" that match this regular `expression` (RE2); (?i) first ignores case")
	flags.StringVar(&o.level, "level", "", "only this `level` and worse: debug, info, warning, error, fatal")
	flags.BoolVar(&o.timestamps, "timestamps", false, "begin each line with its time, in UTC")
	var levels []string
	for _, level := range logline.Levels() {
		levels = append(levels, level.String())
	}
	must(cmd.RegisterFlagCompletionFunc("level", cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp)))
}

// complete reads the flags. It contacts nothing.
func (o *selection) complete(cmd *cobra.Command, now time.Time) (logs.Options, error) {
	options := logs.Options{Follow: o.follow, Tail: o.tail}
	var err error
	if options.Since, err = moment("since", o.since, now); err != nil {
		return options, err
	}
	if options.Until, err = moment("until", o.until, now); err != nil {
		return options, err
	}
	switch {
	case o.follow && o.until != "":
		return options, usagef("--follow has no end, but --until sets one: use one of the two")
	case !options.Since.IsZero() && !options.Until.IsZero() && options.Until.Before(options.Since):
		return options, usagef("--until %s is before --since %s", o.until, o.since)
	case !options.Since.IsZero() && !cmd.Flags().Changed("tail"):
		options.Tail = -1
	}
	if o.level != "" {
		if options.Level = logline.ParseLevel(o.level); options.Level == logline.Unknown {
			return options, usagef("--level %s: use debug, info, warning, error or fatal", o.level)
		}
	}
	if o.grep != "" {
		if options.Grep, err = logs.Compile(o.grep); err != nil {
			return options, usagef("--grep: %v", err)
		}
	}
	return options, nil
}

// moment parses a time, or a duration before now.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, usagef("--%s %s: use how long ago, such as 10m, or a time such as 2026-11-20T14:00:00Z",
		flag, text)
}

type logsOptions struct {
	selection
	source  string
	cluster clusterOptions
}

func (a *app) logsCommand() *cobra.Command {
	o := &logsOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "logs [SOURCE…] [flags]",
		Short: "Print logs of node components, merged by time across nodes",
		Long: `Prints logs of nodes: kubelet, containerd and kube-proxy, or the sources named.
swdt finds the log of a program by the configuration of its service, then at the
usual paths. Several logs, and several nodes, are merged by time.

A source is one of

` + sourceTable() + `
or a Windows service's name, pod/NAMESPACE/NAME[/CONTAINER], file:C:\PATH, or
event:CHANNEL; * in a path, a pod or a channel matches anything.

The node reads a log from its end back to --since, and sends only lines that can
match --grep; logs of containers, whose lines may come in pieces, are filtered
on your machine. --since also reads the older parts of a log that a rotation
renamed. The time and the level of a line are those at its head; a warning says
how many lines have no time. -f follows a log that is rotated, truncated or does not exist
yet, and a service that restarts.

-o json prints one line of JSON for each line.`,
		Example: examples(
			"logs kubelet -f", "follow it, through restarts and rotation",
			"logs node/win-1 kubelet", "of one node",
			"logs --since 10m --level warning", "what went wrong lately, in kubelet, containerd and kube-proxy",
			"logs kubelet containerd --grep 'sandbox|(?i)hcs'", "",
			"logs pod/default/web-0", "a pod's containers, as the node has them",
			"logs list", "list the logs",
		),
		Args:              arguments(cobra.ArbitraryArgs),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runLogs(cmd, o, args) },
		ValidArgsFunction: a.completeSources,
	})
	o.addFlags(cmd, "lines")
	cmd.Flags().StringVar(&o.source, "source", string(logs.Auto),
		"the `source` that logs are read from: auto, ssh or api; auto uses the API server if SSH fails and --kubeconfig or "+
			"--context names it")
	o.cluster.addFlags(cmd)
	must(cmd.RegisterFlagCompletionFunc("source",
		cobra.FixedCompletions([]string{string(logs.Auto), string(logs.SSH), string(logs.API)},
			cobra.ShellCompDirectiveNoFileComp)))
	cmd.AddCommand(a.logsListCommand())
	return cmd
}

func sourceTable() string {
	var text strings.Builder
	for _, source := range logs.Sources() {
		text.WriteString("  " + source.Name + strings.Repeat(" ", 14-len(source.Name)) + source.About + "\n")
	}
	return text.String()
}

func (a *app) runLogs(cmd *cobra.Command, o *logsOptions, sources []string) error {
	sources = a.nodesOutOf(sources)
	options, err := o.complete(cmd, time.Now())
	if err != nil {
		return err
	}
	for _, name := range sources {
		if err := logs.CheckName(name); err != nil {
			return usagef("%v", err)
		}
	}
	options.Sources, options.ReportUntimed = sources, true
	if o.source != string(logs.Auto) && o.source != string(logs.SSH) && o.source != string(logs.API) {
		return usagef("--source %s: use auto, ssh or api", o.source)
	}
	if o.source == string(logs.API) && o.follow {
		return usagef("the API server cannot follow a log: leave --follow or --source api out")
	}
	return a.showLogs(cmd.Context(), options, o)
}

// showLogs merges the logs of all nodes.
func (a *app) showLogs(ctx context.Context, options logs.Options, o *logsOptions) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	printer := a.logPrinter(s, options, o.timestamps)
	options.Verbatim = printer.Verbatim()
	err = a.mergeLogs(ctx, s, options, o, printer)
	if err == nil && !printer.Printed() && !options.Follow && a.inText() {
		_, err = fmt.Fprintln(a.streams.Err, "nothing was logged that matches")
	}
	return err
}

func (a *app) mergeLogs(ctx context.Context, s *session, options logs.Options, o *logsOptions, sink logs.Sink) error {
	defer s.story.End()
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	nodes := logs.Nodes{
		Documents: s.documents, Via: logs.Via(o.source), Connect: s.connectAndClose, Reporter: s.reporter,
		Cluster: o.cluster.open, ClusterNamed: o.cluster.named(),
	}
	results, err := nodes.Merge(ctx, options, sink)
	if err != nil {
		return explain(ctx, err)
	}
	for i := range results {
		results[i].Err = explain(ctx, results[i].Err)
	}
	return fleet.Failures(results)
}

// logPrinter returns the printer of logs to stdout.
func (a *app) logPrinter(s *session, o logs.Options, timestamps bool) *logs.Printer {
	// Raw passes colours through; everything else in the lines is printable.
	out := bufio.NewWriterSize(ui.Raw(a.streams.Out), 64<<10)
	print := logs.PrintOptions{
		Story: s.story, Timestamps: timestamps, Colour: a.hasColour(a.streams.Out),
		Nodes: len(s.documents) > 1, Sources: len(o.Sources) != 1 || strings.Contains(o.Sources[0], "*"),
	}
	if !a.inText() {
		out.Reset(a.streams.Out)
		records := a.records(out)
		print.Write = func(l logs.Line) error { return records.write(l) }
	}
	return logs.NewPrinter(out, print)
}
