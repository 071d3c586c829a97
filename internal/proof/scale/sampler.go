package scale

import (
	"context"
	"net/http"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/node"
)

const (
	// maxSamples bounds the samples of a node: when there are more, every second one is dropped, and the
	// next ones come half as often.
	maxSamples = 1200
	// mostCores bounds the CPU time that a process can use in a second: a node may report any.
	mostCores = 4096
)

// Sample is one moment of a run on a node.
type Sample struct {
	// Seconds is the time since the begin of the run, by the clock of your machine.
	Seconds    float64 `json:"seconds"`
	Phase      string  `json:"phase"`      // "" before the first phase
	Written    int     `json:"written"`    // Services that were written in the phase
	Programmed int     `json:"programmed"` // Services of the phase that the node has programmed
	// PendingServices and PendingEndpoints are the changes that kube-proxy's next sync will program, as its
	// metrics report them.
	PendingServices  float64 `json:"pendingServices"`
	PendingEndpoints float64 `json:"pendingEndpoints"`
	// ProxyCores, HNSCores and AgentCores are the CPU time a second since the sample before, of kube-proxy,
	// of the process of HNS, and of swdt's own agent.
	ProxyCores       float64 `json:"proxyCores"`
	HNSCores         float64 `json:"hnsCores"`
	AgentCores       float64 `json:"agentCores"`
	ProxyMemoryBytes uint64  `json:"proxyMemoryBytes"`
	ProxyHandles     uint32  `json:"proxyHandles"`
}

// consumer is a program whose CPU time is added up: one process, or several.
type consumer struct {
	seconds float64           // since the begin of the run
	pids    map[uint32]uint64 // the CPU time of each process at the sample before, in nanoseconds
	begun   bool              // there was a sample before
	memory  uint64
	handles uint32
	// replaced is the number of processes that ended after the begin of the run.
	replaced int
}

// take adds a sample of the program's processes, and returns the cores since the sample before.
func (c *consumer) take(processes []*agentv1.Process, elapsed time.Duration) float64 {
	now := map[uint32]uint64{}
	c.memory, c.handles = 0, 0
	used := 0.0
	for _, p := range processes {
		cpu := uint64(max(p.GetCpu().AsDuration(), 0))
		now[p.GetPid()] = cpu
		c.memory, c.handles = c.memory+p.GetMemoryBytes(), c.handles+p.GetHandles()
		before, known := c.pids[p.GetPid()]
		if cpu > before && (known || c.begun) {
			used += float64(cpu-before) / 1e9
		}
	}
	for pid := range c.pids {
		if _, still := now[pid]; !still {
			c.replaced++
		}
	}
	first := !c.begun
	c.pids, c.begun = now, true
	used = min(used, elapsed.Seconds()*mostCores)
	c.seconds += used
	if first || elapsed <= 0 {
		return 0
	}
	return used / elapsed.Seconds()
}

// sample asks the node for its processes and for kube-proxy's metrics.
func (w *watcher) sample(ctx context.Context) {
	w.sampling.Lock()
	defer w.sampling.Unlock()
	begin := time.Now()
	list, err := w.node.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	w.cost.add(list)
	if err != nil {
		w.failed(ctx, err)
		return
	}
	now := time.Now()
	w.mu.Lock()
	w.offset = list.GetTaken().AsTime().Sub(begin.Add(now.Sub(begin) / 2))
	elapsed := now.Sub(w.sampled)
	w.sampled = now
	w.mu.Unlock()
	w.askMetrics(ctx)
	w.keep(list.GetProcesses(), now, elapsed)
}

// keep adds a sample.
func (w *watcher) keep(all []*agentv1.Process, now time.Time, elapsed time.Duration) {
	phase, written, programmed := w.board.counts(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Sample{Seconds: now.Sub(w.begun).Seconds(), Phase: phase, Written: written, Programmed: programmed}
	s.ProxyCores = w.proxy.take(selected(all, w.isProxy), elapsed)
	s.HNSCores = w.hns.take(selected(all, func(p *agentv1.Process) bool {
		return w.hnsPID != 0 && p.GetPid() == w.hnsPID
	}), elapsed)
	s.AgentCores = w.agent.take(selected(all, node.IsAgent), elapsed)
	s.ProxyMemoryBytes, s.ProxyHandles = w.proxy.memory, w.proxy.handles
	w.memory = max(w.memory, s.ProxyMemoryBytes)
	w.handles = max(w.handles, s.ProxyHandles)
	s.PendingServices, s.PendingEndpoints = w.metrics.Services, w.metrics.Endpoints
	w.samples = append(w.samples, s)
	if len(w.samples) > maxSamples {
		kept := w.samples[:0]
		for i := 0; i < len(w.samples); i += 2 {
			kept = append(kept, w.samples[i])
		}
		w.samples, w.every = kept, 2*w.every
	}
}

// askMetrics reads kube-proxy's metrics. That they cannot be read is no failure: another proxy has none.
func (w *watcher) askMetrics(ctx context.Context) {
	reply, err := w.node.Network.HTTPGet(ctx, &agentv1.HTTPGetRequest{Url: w.MetricsURL})
	w.cost.add(reply)
	if err != nil || reply.GetStatus() != http.StatusOK {
		return
	}
	metrics, ok := kubeproxy.ParseMetrics(reply.GetBody())
	if !ok {
		return
	}
	_, final := w.board.writes()
	w.mu.Lock()
	defer w.mu.Unlock()
	metrics.Follow(w.metrics)
	w.metrics, w.hasMetrics = metrics, true
	at, queued, settled := metrics.Settled()
	at = at.Add(-w.offset)
	switch {
	case !settled:
		w.settled = time.Time{}
	case w.settled.IsZero() || queued != w.queued: // a later sync without a change does not count
		w.settled, w.queued = at, queued
	}
	if !w.complete || w.settled.Before(final.Add(-clockTolerance)) {
		w.settled = time.Time{}
	}
}

func (w *watcher) isProxy(p *agentv1.Process) bool {
	return strings.EqualFold(strings.TrimSuffix(strings.ToLower(p.GetName()), ".exe"), w.Proxy)
}

func selected(all []*agentv1.Process, is func(*agentv1.Process) bool) (some []*agentv1.Process) {
	for _, p := range all {
		if is(p) {
			some = append(some, p)
		}
	}
	return some
}
