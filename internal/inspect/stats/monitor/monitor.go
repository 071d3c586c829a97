// Package monitor watches the statistics of containers on nodes: it asks their sources
// at intervals, and prints, records and checks the answers.
//
//   - monitor.go: the nodes and clusters that are watched
//   - show.go: prints, records and checks each answer
//   - check.go: counts the verdicts that make a check fail
//   - print.go, table.go: the output for people and for tools
package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/poll"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
	"github.com/swdt-dev/swdt/internal/inspect/stats/sample"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// Options select the sources of a watch, and the interval of the requests.
type Options struct {
	Sources   []stats.Source
	Interval  time.Duration
	Callers   int  // additional callers, which ask at the same moments as the first one
	Sandboxes bool // also request the statistics of whole pods
	Keep      func(stats.Container) bool
	For       time.Duration // how long to watch; 0: until the context ends
	// Levels is the time between two looks at the numbers that should stay the same for hours; 0: there are none.
	Levels time.Duration
	// Cluster returns the API server's client, without contacting the server.
	Cluster func() (*cluster.Cluster, error)
}

// Observer receives the nodes and the answers of a watch, one call at a time.
type Observer interface {
	Node(record.NodeFacts) error
	// Reading handles one answer. It returns ErrEnough to end the watch.
	Reading(stats.Reading) error
	// Levels handles the numbers of one look at a node.
	Levels(stats.Levels) error
}

// ErrEnough is the error that an Observer returns to end the watch.
var ErrEnough = errors.New("seen enough")

// OneAtATime returns an Observer that the watches of several nodes can share. It passes one call
// at a time on to the given Observer.
func OneAtATime(to Observer) Observer { return &oneAtATime{to: to} }

type oneAtATime struct {
	mu sync.Mutex
	to Observer
}

func (o *oneAtATime) Node(facts record.NodeFacts) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Node(facts)
}

func (o *oneAtATime) Reading(r stats.Reading) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Reading(r)
}

func (o *oneAtATime) Levels(l stats.Levels) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Levels(l)
}

// Cluster watches nodes through the API server alone, without SSH. Without names it
// watches all Windows nodes of the cluster.
func Cluster(ctx context.Context, names []string, o Options, to Observer) error {
	c, err := o.Cluster()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names, err = c.WindowsNodes(ctx); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return errors.New("the cluster has no node with the label kubernetes.io/os=windows; name one with --node")
	}
	work, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		work.Go(func() error { return o.summaryAlone(ctx, c, name, to) })
	}
	if err := work.Wait(); !errors.Is(err, ErrEnough) {
		return err
	}
	return nil
}

// summaryAlone watches the kubelet's summary of one node.
func (o Options) summaryAlone(ctx context.Context, c *cluster.Cluster, name string, to Observer) error {
	facts, err := c.Node(ctx, name)
	if err != nil {
		return err
	}
	if !facts.Exists {
		return &cluster.NoNodeError{Node: name}
	}
	err = to.Node(record.NodeFacts{
		Name: name, Windows: strings.TrimSpace(facts.OSImage + " " + facts.KernelVersion), Runtime: facts.Runtime,
		Kubelet: facts.KubeletVersion,
		Note: "read only through the API server: the runtime's own answers, and the calls of other clients, are " +
			"unknown",
	})
	if err != nil {
		return err
	}
	asker := sample.NewSummary(c, name, nodeCores(facts))
	return poll.Run(ctx, o.poll(name, asker), to.Reading)
}

// nodeCores returns the number of the node's cores. It rounds the allocatable cores up: they
// lack the part that is reserved for the system, which is usually less than a core.
func nodeCores(facts cluster.Node) float64 {
	return math.Ceil(float64(facts.Allocatable.MilliCPU) / 1000)
}

func (o Options) poll(name string, askers ...poll.Asker) poll.Options {
	return poll.Options{
		Node: name, Askers: askers, Interval: o.Interval, For: o.For, Callers: o.Callers, Keep: o.Keep,
	}
}

// Node watches one node that is reached by SSH.
func Node(ctx context.Context, n *node.Node, doc config.Document, o Options, to Observer, r ui.Reporter) (err error) {
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return fmt.Errorf("read the node's facts: %w", err)
	}
	client, err := criclient.Open(ctx, n, doc.RuntimePipe(), criclient.Options{Reconnect: r})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	known := record.NodeFacts{
		Name: doc.Node.Metadata.Name, Cores: float64(facts.GetCpus()),
		Windows: strings.TrimSpace(facts.GetProduct() + " " + facts.GetBuild()),
	}
	if simulated := word.Of(facts.GetSimulated()); simulated != "" {
		known.Note = "not a real Windows: " + simulated
	}
	if version, err := client.Runtime.Version(ctx, &runtimev1.VersionRequest{}); err == nil {
		known.Runtime = version.GetRuntimeName() + " " + version.GetRuntimeVersion()
	}
	askers, err := o.askers(ctx, n, doc, client, &known)
	if err != nil {
		return err
	}
	if err := to.Node(known); err != nil {
		return err
	}
	ui.Done(r) // without this, the live line of r would remain within the table
	if o.Levels == 0 {
		return poll.Run(ctx, o.poll(known.Name, askers...), to.Reading)
	}
	levels := &levels{from: sample.NewLevels(n, client), name: known.Name, to: to, reporter: r}
	if err := levels.look(ctx); err != nil { // before the watch, so that a short one has them, too
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	looking, enough := context.WithCancel(ctx)
	work.Go(func() error { return levels.repeat(looking, o.Levels) })
	work.Go(func() error {
		defer enough()
		return poll.Run(ctx, o.poll(known.Name, askers...), to.Reading)
	})
	return work.Wait()
}

// levels looks at the levels of a node.
type levels struct {
	from     *sample.Levels
	name     string
	to       Observer
	reporter ui.Reporter
	failing  bool
}

// look passes the levels on. If there are none, it warns once each time the node begins to fail. The end of ctx is no error.
func (l *levels) look(ctx context.Context) error {
	found, err := l.from.Look(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil && !l.failing {
		l.reporter.Warn("read the numbers of %s: %v", l.name, err)
	}
	if l.failing = err != nil; l.failing {
		return nil
	}
	found.Node = l.name
	return l.to.Levels(found)
}

// repeat looks at an interval until ctx ends.
func (l *levels) repeat(ctx context.Context, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := l.look(ctx); err != nil {
			return err
		}
	}
}

func (o Options) askers(
	ctx context.Context, n *node.Node, doc config.Document, client *criclient.Client, known *record.NodeFacts,
) (askers []poll.Asker, err error) {
	for _, wanted := range o.Sources {
		switch wanted {
		case stats.CRI:
			askers = append(askers, sample.NewCRI(client.Runtime, known.Cores, o.Sandboxes))
		case stats.Node:
			askers = append(askers, sample.NewNode(client.Runtime, n.Processes, known.Cores))
		case stats.Summary:
			var c *cluster.Cluster
			if c, err = o.Cluster(); err != nil {
				return nil, err
			}
			name, err := n.ObjectName(ctx, doc.Node.Spec.Kubernetes.Join)
			if err != nil {
				return nil, err
			}
			if object, err := c.Node(ctx, name); err == nil {
				known.Kubelet = object.KubeletVersion
			}
			askers = append(askers, sample.NewSummary(c, name, known.Cores))
		}
	}
	return askers, nil
}
