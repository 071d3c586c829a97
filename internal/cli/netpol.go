package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/proof/netpol"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/proof/policy"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) netpolCommand() *cobra.Command {
	cmd := group("netpol", "Compare what network policies do with what they mean", a.netpolExplainCommand(),
		a.netpolRunCommand(), a.netpolListCommand())
	cmd.Long = `Compares what the pod network of a cluster does with what NetworkPolicies mean, in a
truth table: each pod tries to reach each port of each other pod, on Linux and
Windows, before and after the policies. "netpol explain" shows what policies mean,
without a cluster.`
	cmd.Example = examples(
		"netpol explain policy.yaml", "what the policies of a file mean",
		"netpol run", "all standard policies, on the kubeconfig's cluster",
		"netpol run policy.yaml --out netpol.html", "your own ones, as a page",
	)
	return cmd
}

// netpolChoice are the arguments and flags that choose policies.
type netpolChoice struct {
	files     []string
	cases     []string
	pods      int
	protocols []string
}

func (o *netpolChoice) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&o.cases, "case", nil, "only these standard `cases`, several times or with commas")
	flags.IntVar(&o.pods, "pods", netpol.DefaultPods, "the `number` of pods; with files the largest number")
	flags.StringSliceVar(&o.protocols, "protocols", []string{"tcp", "udp"},
		"the `protocols` of the standard cases: tcp, udp")
	must(errors.Join(
		cmd.RegisterFlagCompletionFunc("case", completeNetpolCases),
		cmd.RegisterFlagCompletionFunc("protocols", cobra.FixedCompletions([]string{"tcp", "udp"},
			cobra.ShellCompDirectiveNoFileComp))))
}

func completeNetpolCases(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := netpol.Cases()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name+"\t"+c.Proves)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// choose returns the model and the cases that the arguments and flags choose.
func (o *netpolChoice) choose(cmd *cobra.Command, a *app) (netpol.Model, []netpol.Case, error) {
	if len(o.files) == 0 {
		return o.standard()
	}
	if len(o.cases) > 0 || cmd.Flags().Changed("protocols") {
		return netpol.Model{}, nil, usagef("--case and --protocols choose standard policies: leave them out, or the files")
	}
	most := netpol.MaxPods
	if cmd.Flags().Changed("pods") {
		most = o.pods
	}
	c, err := netpol.Load(o.files, a.streams.In)
	if err != nil {
		return netpol.Model{}, nil, &exitError{code: exitUsage, err: err}
	}
	model, err := netpol.Derive(c.Policies, most)
	if err != nil {
		return netpol.Model{}, nil, &exitError{code: exitUsage, err: err}
	}
	return model, []netpol.Case{c}, nil
}

func (o *netpolChoice) standard() (netpol.Model, []netpol.Case, error) {
	var protocols []corev1.Protocol
	for _, word := range o.protocols {
		protocol := corev1.Protocol(strings.ToUpper(word))
		switch {
		case protocol == corev1.ProtocolSCTP:
			return netpol.Model{}, nil, usagef("--protocols %s: Windows has no SCTP; use tcp or udp", word)
		case !slices.Contains(policy.Protocols(), protocol):
			return netpol.Model{}, nil, usagef("--protocols %s: the protocols are tcp and udp", word)
		}
		if !slices.Contains(protocols, protocol) {
			protocols = append(protocols, protocol)
		}
	}
	model, err := netpol.Standard(o.pods, protocols...)
	if err != nil {
		return model, nil, usagef("--pods %v", err)
	}
	all, err := netpol.Cases()
	if err != nil {
		return model, nil, err
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	for _, name := range o.cases {
		if !slices.Contains(names, name) {
			if similar := closest(name, names); similar != "" {
				return model, nil, usagef("there is no case %q; did you mean %s?", name, similar)
			}
			return model, nil, usagef("there is no case %q: use %s", name, strings.Join(names, ", "))
		}
	}
	return model, slices.DeleteFunc(all, func(c netpol.Case) bool {
		return len(o.cases) > 0 && !slices.Contains(o.cases, c.Name)
	}), nil
}

func (a *app) netpolListCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "list",
		Short:      "List the standard policies of \"netpol run\"",
		SuggestFor: []string{"cases", "ls", "show"},
		Long: `Lists the standard cases: each is a set of policies, and proves one sentence about the
pod network. -o json has the policies. No cluster is contacted.`,
		Example: examples("netpol list", "", "netpol list -o wide", "with the names of the policies"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			all, err := netpol.Cases()
			if err != nil {
				return err
			}
			list, err := netpol.NewList(all)
			if err != nil {
				return err
			}
			return a.print(list, list.WriteText)
		},
	}
}

func (a *app) netpolExplainCommand() *cobra.Command {
	o := &netpolChoice{}
	cmd := &cobra.Command{
		Use:        "explain [FILE…] [flags]",
		Short:      "Show which pods may reach which, by the policies of files",
		SuggestFor: []string{"show", "expected", "analyze", "analyse"},
		Long: `Shows what the NetworkPolicies of files mean: a table of which pods may reach which
ports of which pods. The pods are invented so that each selector matches some and does
not match others. Without files, it explains the standard cases. FILE may be - for
stdin. Policies of other kinds (Calico, Cilium, AdminNetworkPolicy) are named, since a
cluster obeys them too; other objects are skipped. No cluster is contacted.`,
		Example: examples(
			"netpol explain policy.yaml", "",
			"netpol explain --case namespace-and-pod", "a standard case",
		),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = args
			model, cases, err := o.choose(cmd, a)
			if err != nil {
				return err
			}
			explained, err := netpol.Explain(model, cases)
			if err != nil {
				return err
			}
			return a.print(explained, explained.WriteText)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// netpolRunOptions are the flags of netpol run.
type netpolRunOptions struct {
	cluster clusterOptions
	choice  netpolChoice
	images  clusterCheckOptions
	settle  time.Duration
	attempt time.Duration
	hosts   bool
	out     string
}

func (a *app) netpolRunCommand() *cobra.Command {
	o := &netpolRunOptions{}
	cmd := &cobra.Command{
		Use:        "run [FILE…] [flags]",
		Short:      "Measure which pods reach which, and compare it with the policies",
		SuggestFor: []string{"test", "check", "probe", "start"},
		Long: `Makes pods on the nodes of the cluster, on Linux and Windows by turns, and lets each try
to reach each port of each other pod: first without policies, then with those of each
case. A cell of the table that differs from what the policies mean is marked, and how
long the policies took to bind is measured. Without files, it runs the standard cases;
with files, one case with all their policies and pods that match their selectors. The
policies are made in namespaces of their own and affect no other pods.

With --hosts, the nodes are in the table too: a pod and its own node must always reach
each other. For other traffic from and to nodes, the meaning of policies is undefined,
so it is measured and not judged.

The exit code is 5 if a cell differs, and 1 if the table could not be measured. Cells
that differ by a known limit of the pod network on Windows nodes are marked l, with the
source of the limit, and are no failure.

All objects are in namespaces that are removed at the end, also after Ctrl-C; the next
run removes those of a killed one. The pods have no rights and no token. swdt copies a
small program into them. An image needs agnhost's pause as its entry point, and curl;
the default is ` + smoke.DefaultImage + `.`,
		Example: examples(
			"netpol run", "the standard cases",
			"netpol run --case port-range,ip-block --pods 20", "two of them, with more pods",
			"netpol run --hosts --case deny-both", "with the nodes themselves",
			"netpol run policy.yaml --out netpol.html", "your own policies, as a page",
			"netpol run --image mirror.example.com/agnhost:2.63.0", "without the internet",
		),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.choice.files = args
			return a.runNetpol(cmd, o)
		},
	}
	o.cluster.addFlags(cmd)
	o.choice.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.images.image, "image", "", "`image` of the pods (default agnhost)")
	flags.StringVar(&o.images.linuxImage, "linux-image", "", "`image` of the pods on Linux (default that of --image)")
	flags.DurationVar(&o.images.wait, waitTimeout, smoke.DefaultWait, "how long the start of each pod may take")
	flags.BoolVar(&o.hosts, "hosts", false, "add the nodes themselves, by pods in their network")
	flags.DurationVar(&o.settle, "settle", netpol.DefaultSettle, "how long policies may take to bind")
	flags.DurationVar(&o.attempt, "probe-timeout", netpol.DefaultProbeTimeout,
		"how long an attempt to reach a port may take")
	flags.StringVar(&o.out, "out", "", "`file` for the result as an HTML page")
	must(cmd.MarkFlagFilename("out", "html"))
	return cmd
}

// complete checks the arguments and flags without contacting anything.
func (o *netpolRunOptions) complete(cmd *cobra.Command, a *app) (netpol.Options, error) {
	options := netpol.Options{Settle: o.settle, ProbeTimeout: o.attempt, Nodes: o.hosts}
	pods, err := o.images.complete(a)
	if err != nil {
		return options, err
	}
	options.Image, options.LinuxImage, options.Wait = pods.Image, pods.LinuxImage, pods.Wait
	switch {
	case o.settle <= 0:
		return options, usagef("--settle %s: use a positive time, such as 20s", o.settle)
	case o.attempt <= 0 || o.attempt > netprobe.MaxTimeout:
		return options, usagef("--probe-timeout %s: use a time up to %s", o.attempt, netprobe.MaxTimeout)
	}
	if o.out != "" {
		if err := checkOutFile("--out", o.out); err != nil {
			return options, err
		}
	}
	options.Model, options.Cases, err = o.choice.choose(cmd, a)
	return options, err
}

func (a *app) runNetpol(cmd *cobra.Command, o *netpolRunOptions) error {
	options, err := o.complete(cmd, a)
	if err != nil {
		return err
	}
	c, err := o.cluster.open()
	if err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(cmd.Context())
	defer cancel()
	story := a.newStory()
	options.Reporter = func(pod string) ui.Reporter { return story.Node(pod) }
	options.Program = a.probes(ctx, story.Node(""))
	report, err := netpol.Run(ctx, c, options)
	story.End()
	if len(report.Pods) == 0 { // nothing was made
		return unreachable(explain(ctx, err))
	}
	printed := a.print(report, report.WriteText)
	if o.out != "" {
		printed = errors.Join(printed, localfile.ReplaceBy(o.out, report.WritePage))
	}
	return errors.Join(printed, netpolFailure(ctx, err))
}

// netpolFailure adds the exit code to the error of a run. The tables already show the differences.
func netpolFailure(ctx context.Context, err error) error {
	var differs *netpol.DiffersError
	if errors.As(err, &differs) && err == error(differs) {
		return &exitError{code: exitFinding}
	}
	return unreachable(explain(ctx, err))
}
