package cli

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
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
	return group("trace", "Switch debug logs of containerd and kubelet on and off",
		a.traceOnCommand(), a.traceOffCommand(), a.traceStatusCommand())
}

func (a *app) traceOnCommand() *cobra.Command {
	o := &traceOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:   "on [containerd|kubelet]... [flags]",
		Short: "Switch debug logs on",
		Long: `Makes containerd log at debug level, by its configuration file and the command
line of its service, and kubelet with --v=4, by the command line of its service.
With --otlp a containerd 1.6 or 1.7 also sends its spans to an OpenTelemetry
collector that the node reaches.

The node keeps the previous configuration, byte for byte, for ` + "`swdt trace off`" + `.
One transaction changes both services and restarts each once, with the services
that depend on it. If one does not become healthy, its change is undone (exit
code 4) and the other is changed alone. A broken connection does no harm. A
second run finds nothing to do; another level replaces the present level.
Without a name both are switched, if the node has them.`,
		Example: examples(
			"trace on", "both",
			"trace on kubelet --v 6", "",
			"trace on containerd --otlp http://192.168.122.1:4318", "spans too",
			"logs containerd -f --grep level=debug", "show them",
		),
		Args:      tracedServices,
		ValidArgs: trace.Services(),
		RunE:      func(cmd *cobra.Command, args []string) error { return a.runTraceOn(cmd.Context(), args, o) },
	}))
	cmd.Flags().StringVar(&o.level, "containerd-level", "debug", "containerd's log `level`: debug or trace")
	cmd.Flags().IntVar(&o.v, "v", 4, "kubelet's verbosity, 0 to 10")
	cmd.Flags().StringVar(&o.otlp, "otlp", "", "`URL` of the collector that containerd sends spans to")
	cmd.Flags().BoolVar(&o.force, "force", false,
		"go on even if a setting that trace had changed was changed again: restore the present value later")
	return cmd
}

func (a *app) traceOffCommand() *cobra.Command {
	o := &traceOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:   "off [containerd|kubelet]... [flags]",
		Short: "Switch debug logs off",
		Long: `Puts back the configuration file and the command lines that ` + "`swdt trace on`" + `
changed, byte for byte, and restarts the services. If another program has
changed one of them since, swdt refuses and prints the difference. With --force,
swdt puts them back all the same, and keeps the changed file beside the restored
one as *.swdt-old.`,
		Example: examples("trace off", "", "trace off kubelet --dry-run", "what would change"),
		Args:    tracedServices, ValidArgs: trace.Services(),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTraceOff(cmd.Context(), args, o) },
	}))
	cmd.Flags().BoolVar(&o.force, "force", false,
		"go on even if a setting that trace had changed was changed again: restore the value from before trace")
	return cmd
}

func (a *app) traceStatusCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:   "status",
		Short: "Show which debug logs are on, since when, and by whom",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.runTraceStatus(cmd.Context()) },
	})
}

// tracedServices checks the service names in the arguments of `trace on` and `trace off`.
func tracedServices(cmd *cobra.Command, args []string) error {
	for _, name := range args {
		if !slices.Contains(trace.Services(), name) {
			return usagef("%s has no service %q: use %s", cmd.CommandPath(), name,
				strings.Join(trace.Services(), " or "))
		}
	}
	return nil
}

// complete checks the flags of `trace on`.
func (o *traceOptions) complete(services []string) (trace.Options, error) {
	options := trace.Options{
		Services: services, ContainerdLevel: o.level, KubeletVerbosity: strconv.Itoa(o.v),
		OTLP: o.otlp, Force: o.force, Holder: plan.Holder("trace"),
	}
	if o.level != "debug" && o.level != "trace" {
		return options, usagef("--containerd-level %s: use debug or trace", o.level)
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
	return a.switchTrace(ctx, trace.Options{Services: services, Force: o.force, Holder: plan.Holder("trace")},
		trace.Off)
}

func (a *app) switchTrace(ctx context.Context, options trace.Options,
	steps func(*node.Node, trace.Options) []plan.Step) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (plan.Result, error) {
		if err := push.Settle(ctx, n, push.Options{Holder: options.Holder, DryRun: a.global.dryRun}, r); err != nil {
			return plan.Result{}, err
		}
		options := options
		options.Spec = doc.Node.Spec.Kubernetes
		done, err := plan.Run(ctx, steps(n, options),
			plan.Options{Machine: n, DryRun: a.global.dryRun, Holder: options.Holder}, r)
		return plan.Result{Steps: done}, err
	})
	return a.printSteps(results, "")
}

func (a *app) runTraceStatus(ctx context.Context) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document,
		_ ui.Reporter) ([]trace.ServiceStatus, error) {
		return trace.Status(ctx, n)
	})
	report := trace.NewReport(results)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return fleet.Failures(results)
}
