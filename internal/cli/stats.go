package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/criclient"
	"github.com/swdt-dev/swdt/internal/criproxy"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/stats"
	"github.com/swdt-dev/swdt/internal/stats/record"
	"github.com/swdt-dev/swdt/internal/stats/source"
	"github.com/swdt-dev/swdt/internal/stats/watch"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) statsCommand() *cobra.Command {
	cmd := group("stats", "The CPU time that is reported, against what was used",
		a.statsWatchCommand(), a.statsCompareCommand(), a.statsReportCommand(), a.statsServeCommand())
	cmd.Long = `What the container runtime and the kubelet report as a container's CPU usage,
beside the rate computed from its counter of CPU time over 10 seconds and more:
a reported 0 of a busy container, a rate that no counter explains, a stale one.`
	cmd.Example = examples(
		"stats watch", "look at it",
		"stats watch --callers 2 --for 2m --fail-on zero,above", "a check: exit code 5 where it finds one",
		"stats watch --for 5m --record before.swdt", "then with the other containerd, and stats compare",
	)
	return cmd
}

// statsOptions say what is asked, by whom and how often.
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
	choice  rowOptions // of stats watch
}

func (o *statsOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&o.sources, "source", []string{string(stats.CRI)}, "whom to ask: `cri,summary,node`")
	flags.DurationVar(&o.interval, "interval", time.Second, "`time` between two answers")
	flags.IntVar(&o.callers, "callers", 0, "`number` of others who ask at the same moments")
	flags.StringVar(&o.namespace, "namespace", "", "only pods of this `namespace`")
	flags.StringVar(&o.pod, "pod", "", "only pods whose name matches this `regular expression`")
	flags.Float64Var(&o.tolerance, "tolerance", stats.DefaultTolerance, "how far a rate may be off: 0.2 is 20 %")
	flags.BoolVar(&o.sandboxes, "sandboxes", false, "ask the runtime for whole pods too, which is one more call")
	o.cluster.addFlags(cmd)
	must(cmd.RegisterFlagCompletionFunc("source", cobra.FixedCompletions([]string{"cri", "summary", "node"}, cobra.ShellCompDirectiveNoFileComp)))
}

func (o *statsOptions) complete() (err error) {
	if o.wanted, err = stats.ParseSources(o.sources); err != nil {
		return usagef("--source: %v", err)
	}
	if o.podName, err = regexp.Compile(o.pod); err != nil {
		return usagef("--pod: %v", err)
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
	return (o.namespace == "" || c.Namespace == o.namespace) && o.podName.MatchString(c.Pod) && o.choice.matches(c.Path())
}

func (o *statsOptions) meta() record.Meta {
	return record.Meta{
		Started: time.Now().UTC(), Interval: o.interval.String(), Callers: o.callers, Sources: o.wanted, Tolerance: o.tolerance,
	}
}

// observer takes what a watch sees, one thing at a time.
type observer interface {
	node(record.NodeFacts) error
	reading(stats.Reading) error
}

// oneAtATime lets several nodes' watches share an observer.
type oneAtATime struct {
	mu sync.Mutex
	observer
}

func (o *oneAtATime) node(facts record.NodeFacts) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.observer.node(facts)
}

func (o *oneAtATime) reading(r stats.Reading) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.observer.reading(r)
}

// errEnough is an observer's way to end the watch.
var errEnough = errors.New("seen enough")

// observe watches all nodes for so long (0: until ctx ends).
func (a *app) observe(ctx context.Context, o *statsOptions, duration time.Duration, to observer) error {
	to = &oneAtATime{observer: to}
	// It stays beside one's work, for hours: rather small than quick.
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	if slices.Equal(o.wanted, []stats.Source{stats.Summary}) {
		return a.observeCluster(ctx, o, duration, to)
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	s.app.global.parallel = max(s.app.global.parallel, len(s.documents)) // none waits for another's end
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (struct{}, error) {
		err := o.observeNode(ctx, n, doc, r, duration, to)
		if errors.Is(err, errEnough) {
			enough()
			err = nil
		}
		return struct{}{}, err
	})
	return fleet.Failures(results)
}

// observeCluster needs no SSH: the nodes are those of the cluster.
func (a *app) observeCluster(ctx context.Context, o *statsOptions, duration time.Duration, to observer) error {
	c, err := o.cluster.open()
	if err != nil {
		return err
	}
	names := a.global.nodes
	if len(names) == 0 {
		if names, err = c.WindowsNodes(ctx); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return errors.New("the cluster has no node with the label kubernetes.io/os=windows; name one with -n")
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	work, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		work.Go(func() error {
			facts, err := c.Node(ctx, name)
			if err != nil {
				return err
			}
			if !facts.Exists {
				return &cluster.NoNodeError{Node: name}
			}
			err = to.node(record.NodeFacts{
				Name: name, Windows: strings.TrimSpace(facts.OSImage + " " + facts.KernelVersion), Runtime: facts.Runtime, Kubelet: facts.KubeletVersion,
				Note: "seen through the API server alone: what the runtime answered the kubelet, and how often others ask, is not known",
			})
			if err != nil {
				return err
			}
			asker := source.NewSummary(c, name, nodeCores(facts))
			err = watch.Run(ctx, o.watch(name, duration, asker), to.reading)
			return cutShort(ctx, duration, err)
		})
	}
	if err := work.Wait(); !errors.Is(err, errEnough) {
		return explain(ctx, err)
	}
	return nil
}

// nodeCores are the node's cores, of which what its pods may have together lacks the
// system's part. That is less than a core where little is reserved.
func nodeCores(facts cluster.Node) float64 {
	return math.Ceil(float64(facts.Allocatable.MilliCPU) / 1000)
}

func (o *statsOptions) watch(name string, duration time.Duration, askers ...watch.Asker) watch.Options {
	return watch.Options{
		Node: name, Askers: askers, Interval: o.interval, For: duration, Callers: o.callers, Keep: o.keep,
	}
}

func (o *statsOptions) observeNode(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter, duration time.Duration, to observer) (err error) {
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return fmt.Errorf("ask the node what it is: %w", err)
	}
	keeper := &criproxy.Keeper{Node: n, Pipe: doc.RuntimePipe(), Reporter: r}
	client, err := criclient.New(ctx, keeper.Dial)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	known := record.NodeFacts{
		Name: doc.Node.Metadata.Name, Cores: float64(facts.GetCpus()),
		Windows: strings.TrimSpace(facts.GetProduct() + " " + facts.GetBuild()),
	}
	if simulated := facts.GetSimulated(); simulated != "" {
		known.Note = "not a real Windows: " + simulated
	}
	if version, err := client.Runtime.Version(ctx, &runtimev1.VersionRequest{}); err == nil {
		known.Runtime = version.GetRuntimeName() + " " + version.GetRuntimeVersion()
	}
	askers, err := o.askers(ctx, n, doc, client, &known)
	if err != nil {
		return err
	}
	if err := to.node(known); err != nil {
		return err
	}
	ui.Done(r) // its live line would stand in the table
	err = watch.Run(ctx, o.watch(known.Name, duration, askers...), to.reading)
	return cutShort(ctx, duration, err)
}

// cutShort makes an error of a --timeout that ended a watch before its time: what it
// was to find it may have missed.
func cutShort(ctx context.Context, duration time.Duration, err error) error {
	var timeout *timeoutError
	if err == nil && duration > 0 && errors.As(context.Cause(ctx), &timeout) {
		return timeout
	}
	return err
}

func (o *statsOptions) askers(
	ctx context.Context, n *node.Node, doc config.Document, client *criclient.Client, known *record.NodeFacts,
) (askers []watch.Asker, err error) {
	for _, wanted := range o.wanted {
		switch wanted {
		case stats.CRI:
			askers = append(askers, source.NewCRI(client.Runtime, known.Cores, o.sandboxes))
		case stats.Node:
			askers = append(askers, source.NewNode(client.Runtime, n.Processes, known.Cores))
		case stats.Summary:
			var c *cluster.Cluster
			if c, err = o.cluster.open(); err != nil {
				return nil, err
			}
			name, err := n.ObjectName(ctx, doc.Node.Spec.Kubernetes.Join)
			if err != nil {
				return nil, err
			}
			if object, err := c.Node(ctx, name); err == nil {
				known.Kubelet = object.KubeletVersion
			}
			askers = append(askers, source.NewSummary(c, name, known.Cores))
		}
	}
	return askers, nil
}
