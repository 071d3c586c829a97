package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// defaultInterval is the shortest time between two looks at HNS, and the time between two samples.
	defaultInterval = time.Second
	// lookShare is how many times as long as the last look the pause after it is, so that HNS serves looks
	// at most a fifth of the time.
	lookShare = 4
	// clockTolerance is how much earlier than its last write a phase can be programmed, by a clock that is
	// compared over the network.
	clockTolerance = time.Second
	// reportInterval is the shortest time between two reports of the progress.
	reportInterval = 5 * time.Second
	// maxFailures bounds the kinds of failures that are kept, and maxMessage a message, in characters.
	maxFailures, maxMessage = 50, 300
)

// Target is a node to watch.
type Target struct {
	Name string
	Node *node.Node
}

// watcher watches one node during a run.
type watcher struct {
	Options
	name      string
	node      *node.Node
	board     *board
	balancers balancers
	cost      tally
	r         ui.Reporter
	begun     time.Time
	reported  time.Time  // when the progress was last reported; only look uses it
	sampling  sync.Mutex // is held during a sample

	mu         sync.Mutex
	looked     bool // the last look succeeded
	complete   bool // all objects of the phase are written
	every      time.Duration
	samples    []Sample
	sampled    time.Time
	offset     time.Duration // how far the node's clock is ahead of this machine's
	metrics    kubeproxy.Metrics
	hasMetrics bool
	settled    time.Time // kube-proxy programmed all of the phase; zero: not yet, or unknown
	queued     float64   // the time of kube-proxy's last change at that time, by the node's clock
	hnsPID     uint32    // 0: unknown
	proxy      consumer
	hns        consumer
	agent      consumer
	memory     uint64 // the most of the phase
	handles    uint32
	failures   map[Failure]int
}

// tally adds up the cost of watching.
type tally struct {
	mu   sync.Mutex
	cost Cost
}

func newWatcher(t Target, o Options) *watcher {
	w := &watcher{Options: o, name: t.Name, node: t.Node, r: o.Reporter(t.Name), begun: time.Now(),
		every: o.Interval, failures: map[Failure]int{}}
	w.balancers.compute = counted{t.Node.Compute, &w.cost}
	return w
}

// prepare looks at the node before anything is made. The error means that the node cannot be measured.
func (w *watcher) prepare(ctx context.Context) error {
	if _, err := w.balancers.read(ctx, w.board.isOurs); err != nil {
		return fmt.Errorf("node %s: %w", w.name, err)
	}
	if service, err := w.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "hns"}); err == nil {
		w.hnsPID = service.GetStatus().GetPid()
	}
	w.sample(ctx)
	if len(w.proxy.pids) == 0 {
		w.r.Warn("no process %s.exe runs on the node, so its CPU time and memory stay unknown; --proxy names another",
			w.Proxy)
	}
	if !w.hasMetrics {
		w.r.Warn("%s has no metrics of kube-proxy, so only HNS shows what is programmed; --metrics-url names another",
			w.MetricsURL)
	}
	return context.Cause(ctx)
}

// watch looks at the node until ctx ends.
func (w *watcher) watch(ctx context.Context) {
	defer ui.Done(w.r)
	var running sync.WaitGroup
	running.Go(func() { w.look(ctx) })
	running.Go(func() {
		for wait.For(ctx, w.interval()) == nil {
			w.sample(ctx)
		}
	})
	running.Wait()
}

func (w *watcher) interval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.every
}

// look looks at HNS as long as a Service is pending.
func (w *watcher) look(ctx context.Context) {
	var earlier time.Time
	for ctx.Err() == nil {
		changed := w.board.await()
		if w.board.pending(w) == 0 {
			earlier = time.Time{}
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		begin := time.Now()
		found, err := w.balancers.read(ctx, w.board.isOurs)
		end := time.Now()
		w.looks(end.Sub(begin), err == nil)
		if err != nil {
			w.failed(ctx, err)
		} else {
			w.board.observe(w, found, earlier, end)
			earlier = begin
			w.report()
		}
		_ = wait.For(ctx, max(w.Interval, lookShare*end.Sub(begin)))
	}
}

// looks counts a look at HNS.
func (w *watcher) looks(took time.Duration, ok bool) {
	w.cost.mu.Lock()
	w.cost.cost.Looks++
	w.cost.cost.LookSeconds += took.Seconds()
	w.cost.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = ok
}

// report reports the progress, now and then.
func (w *watcher) report() {
	if time.Since(w.reported) < reportInterval {
		return
	}
	w.reported = time.Now()
	phase, written, programmed := w.board.counts(w)
	w.r.Step("%s: %d of %d written Services are programmed", phase, programmed, written)
}

// failed notes that the node did not answer, and connects again if the connection was lost.
func (w *watcher) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	w.note(FromWatch, err.Error(), 1)
	var lost *node.LostError
	if errors.As(err, &lost) {
		if err := w.node.Reconnect(ctx); err != nil && ctx.Err() == nil {
			w.note(FromWatch, err.Error(), 1)
		}
	}
}

// note counts a failure.
func (w *watcher) note(source, message string, count int) {
	if runes := []rune(message); len(runes) > maxMessage {
		message = string(runes[:maxMessage]) + "…"
	}
	key := Failure{Source: source, Message: ui.Printable(message)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.failures[key]; known || len(w.failures) < maxFailures {
		w.failures[key] += count
	}
}

// mark is the state of a node at the begin of a phase.
type mark struct {
	metrics                    kubeproxy.Metrics
	proxy, hns, agent          float64 // seconds of CPU time
	proxyReplaced, hnsReplaced int
}

// begin prepares for a phase.
func (w *watcher) begin(ctx context.Context) mark {
	w.sample(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.complete, w.settled = false, time.Time{}
	w.memory, w.handles = w.proxy.memory, w.proxy.handles
	return mark{metrics: w.metrics, proxy: w.proxy.seconds, hns: w.hns.seconds, agent: w.agent.seconds,
		proxyReplaced: w.proxy.replaced, hnsReplaced: w.hns.replaced}
}

// written marks that all objects of the phase are written.
func (w *watcher) written() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.complete = true
}

// done reports whether the node has programmed all of the phase, and kube-proxy's metrics, if there are
// any, agree.
func (w *watcher) done() bool {
	missing := w.board.pending(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	return missing == 0 && (!w.hasMetrics || !w.settled.IsZero())
}

// end returns the report of a phase that began at m.
func (w *watcher) end(ctx context.Context, phase string, m mark) NodePhase {
	w.mu.Lock()
	settled := w.settled // what the last sample sees, such as a late change of an EndpointSlice, cannot undo it
	w.mu.Unlock()
	w.sample(ctx)
	entries, spans := w.board.state(w)
	_, final := w.board.writes()
	w.mu.Lock()
	defer w.mu.Unlock()
	if settled.IsZero() {
		settled = w.settled
	}
	p := NodePhase{Phase: phase, Services: len(entries), Faults: []Fault{},
		CPU: CPU{ProxySeconds: w.proxy.seconds - m.proxy, HNSSeconds: w.hns.seconds - m.hns,
			AgentSeconds: w.agent.seconds - m.agent},
		ProxyMemoryBytes: w.memory, ProxyHandles: w.handles,
		ProxyRestarts: w.proxy.replaced - m.proxyReplaced,
		Syncs:         syncsSince(w.metrics, m.metrics), Metrics: w.hasMetrics}
	if !settled.IsZero() {
		p.ProxySettled, p.ProxySeconds = true, max(settled.Sub(final).Seconds(), 0)
	}
	p.judge(entries, spans, final, w.Slow)
	return p
}

// summary returns the report of the node, without its phases.
func (w *watcher) summary() NodeReport {
	w.cost.mu.Lock()
	cost := w.cost.cost
	w.cost.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	cost.AgentCPUSeconds = w.agent.seconds
	r := NodeReport{Name: w.name, Phases: []NodePhase{}, Failures: []Failure{}, Samples: w.samples, Cost: cost}
	for kind, count := range w.metrics.Failures {
		if len(r.Failures) < maxFailures {
			r.Failures = append(r.Failures, Failure{Source: FromMetrics, Message: ui.Printable(kind),
				Count: int(min(count, 1e9))})
		}
	}
	for f, count := range w.failures {
		f.Count = count
		r.Failures = append(r.Failures, f)
	}
	slices.SortFunc(r.Failures, compareFailures)
	return r
}
