package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/deploy"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/trace"
	"github.com/swdt-dev/swdt/internal/ui"
)

type traceOptions struct {
	level string
	v     int
	otlp  string
	force bool
}

func (a *app) traceCommand() *cobra.Command {
	return group("trace", "Have containerd and kubelet log more, and put back exactly what was there",
		a.traceOnCommand(), a.traceOffCommand(), a.traceStatusCommand())
}

func (a *app) traceOnCommand() *cobra.Command {
	o := &traceOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:   "on [containerd|kubelet]... [flags]",
		Short: "Switch debug logs on",
		Long: `Has containerd log at debug level, by its configuration file and its service's
command line, and kubelet with --v=4, by its service's command line. With --otlp
a containerd 1.6 or 1.7 also sends its spans to an OpenTelemetry collector that
the node reaches.

What was there before is kept on the node, byte for byte, for ` + "`swdt trace off`" + `.
Both are changed in one transaction, which restarts each once, with those that
depend on it: if one does not get healthy, its change is taken back (exit code 4)
and the other is changed alone. A connection that breaks does no harm. A second
run finds nothing to do; another level changes what is on. Without a name both
are switched, where they are there.`,
		Example: examples(
			"trace on", "both",
			"trace on kubelet --v 6", "",
			"trace on containerd --otlp http://192.168.122.1:4318", "spans too",
			"logs containerd -f --grep level=debug", "and this shows them",
		),
		Args:      tracedServices,
		ValidArgs: trace.Services(),
		RunE:      func(cmd *cobra.Command, args []string) error { return a.runTraceOn(cmd.Context(), args, o) },
	}))
	cmd.Flags().StringVar(&o.level, "level", "debug", "containerd's log `level`: debug or trace")
	cmd.Flags().IntVar(&o.v, "v", 4, "kubelet's verbosity, 0 to 10")
	cmd.Flags().StringVar(&o.otlp, "otlp", "", "`URL` of the collector that containerd sends spans to")
	cmd.Flags().BoolVar(&o.force, "force", false, "somebody changed what trace had changed: take that for what comes back")
	return cmd
}

func (a *app) traceOffCommand() *cobra.Command {
	o := &traceOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:   "off [containerd|kubelet]... [flags]",
		Short: "Put back what was there before",
		Long: `Puts the configuration file and the command lines back that were there before
` + "`swdt trace on`" + `, byte for byte, and restarts the services. Where somebody else
changed one of them meanwhile it refuses and says what differs; --force puts back
what was there before, and leaves the changed file beside it as *.swdt-old.`,
		Example: examples("trace off", "", "trace off kubelet --dry-run", "what would change"),
		Args:    tracedServices, ValidArgs: trace.Services(),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTraceOff(cmd.Context(), args, o) },
	}))
	cmd.Flags().BoolVar(&o.force, "force", false, "somebody changed what trace had changed: put back what was there before all the same")
	return cmd
}

func (a *app) traceStatusCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:   "status",
		Short: "What is on, since when, and by whom",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.runTraceStatus(cmd.Context()) },
	})
}

// tracedServices are the names that on and off take.
func tracedServices(cmd *cobra.Command, args []string) error {
	for _, name := range args {
		if !slices.Contains(trace.Services(), name) {
			return usagef("%s knows no %q: it is about %s", cmd.CommandPath(), name, strings.Join(trace.Services(), " and "))
		}
	}
	return nil
}

// complete checks the flags of on.
func (o *traceOptions) complete(services []string) (trace.Options, error) {
	options := trace.Options{
		Services: services, ContainerdLevel: o.level, KubeletVerbosity: strconv.Itoa(o.v),
		OTLP: o.otlp, Force: o.force, Holder: plan.Holder("trace"),
	}
	if o.level != "debug" && o.level != "trace" {
		return options, usagef("--level %s: use debug or trace", o.level)
	}
	if o.v < 0 || o.v > 10 {
		return options, usagef("--v %d: use 0 to 10", o.v)
	}
	if o.otlp == "" {
		return options, nil
	}
	if len(services) > 0 && !slices.Contains(services, trace.Containerd) {
		return options, usagef("--otlp is about containerd's spans: name containerd too")
	}
	address, err := url.Parse(o.otlp)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return options, usagef("--otlp %s: write it as http://collector:4318, as the node reaches it", o.otlp)
	}
	return options, nil
}

func (a *app) runTraceOn(ctx context.Context, services []string, o *traceOptions) error {
	options, err := o.complete(services)
	if err != nil {
		return err
	}
	return a.switchTrace(ctx, options, trace.On)
}

func (a *app) runTraceOff(ctx context.Context, services []string, o *traceOptions) error {
	return a.switchTrace(ctx, trace.Options{Services: services, Force: o.force, Holder: plan.Holder("trace")}, trace.Off)
}

func (a *app) switchTrace(ctx context.Context, options trace.Options, steps func(trace.Options) []plan.Step) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (stepsOutcome, error) {
		if err := deploy.Settle(ctx, n, options.Holder, a.global.dryRun, r); err != nil {
			return stepsOutcome{}, err
		}
		options := options
		options.Spec = doc.Node.Spec.Kubernetes
		done, err := plan.Run(ctx, n, steps(options), plan.Options{DryRun: a.global.dryRun, Holder: options.Holder}, r)
		return stepsOutcome{Steps: done}, err
	})
	return a.printSteps(results, "")
}

func (a *app) runTraceStatus(ctx context.Context) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document, _ ui.Reporter) ([]trace.ServiceStatus, error) {
		return trace.Status(ctx, n)
	})
	report := traceReport{Nodes: []traceNode{}}
	for _, result := range results {
		report.Nodes = append(report.Nodes, traceNode{
			frame: newFrame(result.Name(), resultOK, result.Err), Services: orNone(result.Value),
		})
	}
	if err := a.print(report, report.writeText); err != nil {
		return err
	}
	return fleet.Failures(results)
}

// traceReport is the result of trace status.
type traceReport struct {
	Nodes []traceNode `json:"nodes"`
}

type traceNode struct {
	frame
	Services []trace.ServiceStatus `json:"services"`
}

func (r traceReport) writeText(w *ui.Page) error {
	for _, n := range r.Nodes {
		if len(r.Nodes) > 1 && n.Error == "" {
			if _, err := fmt.Fprintln(w, n.Name+":"); err != nil {
				return err
			}
		}
		var rows [][]string
		for _, s := range n.Services {
			rows = append(rows, traceRow(s))
		}
		if err := ui.Lines(w, rows); err != nil {
			return err
		}
		for _, s := range n.Services {
			for _, difference := range s.Differences {
				if _, err := fmt.Fprintf(w, "  %s: %s\n", s.Name, difference); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// traceRow is a service in one line.
func traceRow(s trace.ServiceStatus) []string {
	state := map[trace.State]string{trace.NoService: "no service", trace.Changed: "on, and changed since"}[s.State]
	if state == "" {
		state = ui.Words(string(s.State))
	}
	row := []string{s.Name, state}
	if s.State == trace.NoService {
		return row
	}
	level := s.Level
	if s.Before != "" && s.Before != s.Level {
		level += " (before: " + s.Before + ")"
	}
	row = append(row, level)
	if s.Since != nil {
		row = append(row, "since "+s.Since.UTC().Format(time.RFC3339)+" by "+s.By)
	}
	if s.LogFile != "" {
		row = append(row, s.LogFile)
	}
	return row
}
