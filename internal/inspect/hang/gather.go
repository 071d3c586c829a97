package hang

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/goroutines"
	"github.com/swdt-dev/swdt/internal/node"
)

const (
	// Limit bounds the dump of one node, without connecting to it.
	Limit = 25 * time.Second
	// sourceLimit bounds each question to a program; a shim has several seconds of it to answer.
	sourceLimit = 12 * time.Second
	// shimsAtOnce and mostShims bound the shims that are asked.
	shimsAtOnce = 4
	mostShims   = 200
)

// Options configure Gather.
type Options struct {
	Pipe string // of the container runtime
	// MetricsURL is where kube-proxy serves its metrics on the node: it serves its goroutines there, too.
	MetricsURL string
	// Kubelet returns kubelet's goroutines, from the API server; nil: no cluster was given.
	Kubelet func(context.Context) (io.ReadCloser, error)
	// Limit bounds the whole; 0: the constant Limit.
	Limit time.Duration
}

// Gather makes a dump of a node, and analyses it. A part that cannot be read is named in the dump. If a deadline ends the work, the
// dump has what was read until then. The error is that of a ctx that was cancelled, or of a lost connection.
func Gather(ctx context.Context, n *node.Node, o Options) (Node, error) {
	if o.Limit == 0 {
		o.Limit = Limit
	}
	limited, cancel := context.WithTimeout(ctx, limitIn(ctx, o.Limit))
	defer cancel()
	g := &gathering{node: n, options: o, known: pods{}, now: time.Now()}
	g.dump = Node{Calls: []Call{}, Probes: []Probe{}, Processes: []Process{}, Problems: []string{}}
	err := g.listProcesses(limited)
	if err != nil {
		return Node{}, err
	}
	g.run(limited)
	if errors.Is(ctx.Err(), context.Canceled) {
		return Node{}, context.Cause(ctx)
	}
	for i := range g.dump.Processes {
		if p := &g.dump.Processes[i]; p.Kind == Shim {
			p.Pod = g.known[p.ID]
		}
	}
	for i := range g.dump.Calls {
		if c := &g.dump.Calls[i]; c.Pod == "" {
			c.Pod = g.known[c.Subject]
		}
	}
	g.inferPod()
	g.dump.Analyse()
	return g.dump, nil
}

// limitIn returns the limit of a dump that leaves time before the deadline of ctx to bring its result back.
func limitIn(ctx context.Context, limit time.Duration) time.Duration {
	const reserve = 2 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		limit = min(limit, max(left-reserve, left/2))
	}
	return limit
}

// gathering is the dump of one node while it is made.
type gathering struct {
	node    *node.Node
	options Options
	now     time.Time // by the node's clock

	shims []shim

	mu    sync.Mutex
	dump  Node
	known pods
}

// listProcesses sets the processes of the dump.
func (g *gathering) listProcesses(ctx context.Context) error {
	list, err := g.node.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return err
	}
	if list.GetTaken().IsValid() && list.GetTaken().GetSeconds() > 0 {
		g.now = list.GetTaken().AsTime()
	}
	services := g.askServices(ctx)
	shims := 0
	for _, p := range list.GetProcesses() {
		kind := kindOfProcess(p, services)
		if kind == "" {
			continue
		}
		one := Process{Kind: kind, PID: p.GetPid(), Handles: p.GetHandles(), Threads: p.GetThreads(), Groups: []goroutines.Group{}}
		if started := p.GetStarted().AsTime(); p.GetStarted().IsValid() && started.Unix() > 0 {
			one.Started = &started
		}
		if kind == Shim {
			one.ID = clean(commandline.Flag(p.GetCommandLine(), "id"))
			if shims++; shims > mostShims {
				one.Error = fmt.Sprintf("not asked: %d shims are asked at most", mostShims)
			}
		}
		if len(g.dump.Processes) >= mostProcesses {
			continue
		}
		g.dump.Processes = append(g.dump.Processes, one)
		if kind == Shim && one.Error == "" {
			g.shims = append(g.shims, shim{len(g.dump.Processes) - 1, commandline.Flag(p.GetCommandLine(), "namespace")})
		}
	}
	if shims > mostShims {
		g.problem("%d shims run, of which %d are asked", shims, mostShims)
	}
	return nil
}

// kindOfProcess returns the program of a process; "" for one that is not part of a dump. A shim that starts or deletes another
// one has no pipe.
func kindOfProcess(p *agentv1.Process, services map[string]uint32) Kind {
	name := strings.TrimSuffix(strings.ToLower(p.GetName()), ".exe")
	switch {
	case p.GetPid() != 0 && p.GetPid() == services["vmcompute"]:
		return HCSService
	case p.GetPid() != 0 && p.GetPid() == services["hns"]:
		return HNSService
	case name == "containerd":
		return Containerd
	case name == "kubelet":
		return Kubelet
	case name == "kube-proxy":
		return KubeProxy
	case strings.HasPrefix(name, "containerd-shim-") && slices.Contains(commandline.Split(p.GetCommandLine()), "serve"):
		return Shim
	}
	return ""
}

// run asks everything at the same time.
func (g *gathering) run(ctx context.Context) {
	var running sync.WaitGroup
	start := func(work func(context.Context)) {
		running.Go(func() {
			limited, cancel := context.WithTimeout(ctx, sourceLimit)
			defer cancel()
			work(limited)
		})
	}
	for _, work := range []func(context.Context){g.probeHCS, g.probeHNS, g.askRuntime} {
		start(work)
	}
	logRead := make(chan struct{})
	start(func(ctx context.Context) {
		defer close(logRead)
		g.readLog(ctx)
	})
	for i := range g.dump.Processes {
		switch g.dump.Processes[i].Kind {
		case Containerd:
			running.Go(func() {
				<-logRead // for its event, containerd writes all its goroutines into its log, too
				limited, cancel := context.WithTimeout(ctx, sourceLimit)
				defer cancel()
				g.containerd(limited, i)
			})
		case Kubelet:
			start(func(ctx context.Context) { g.kubelet(ctx, i) })
		case KubeProxy:
			start(func(ctx context.Context) { g.kubeProxy(ctx, i) })
		}
	}
	free := make(chan struct{}, shimsAtOnce)
	for _, s := range g.shims {
		running.Go(func() {
			select {
			case free <- struct{}{}:
				defer func() { <-free }()
			case <-ctx.Done():
				g.fail(s.at, "shimdiag", errNotAsked)
				return
			}
			limited, cancel := context.WithTimeout(ctx, sourceLimit)
			defer cancel()
			g.shim(limited, s)
		})
	}
	running.Wait()
	slices.SortFunc(g.dump.Probes, func(a, b Probe) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(g.dump.Problems)
}

// inferPod names the pod of a shim that no other source names: while a pod is made, neither containerd nor its log has the ID. If
// one pod is being made, and one shim of kubelet's namespace that began since then has no pod, they probably belong together.
func (g *gathering) inferPod() {
	var made []Call
	for _, c := range g.dump.Calls {
		if c.Method == "RunPodSandbox" {
			made = append(made, c)
		}
	}
	if len(made) != 1 || made[0].Began == nil {
		return
	}
	var nameless []*Process
	for _, s := range g.shims {
		p := &g.dump.Processes[s.at]
		if p.Pod == "" && s.namespace == "k8s.io" && p.Started != nil && !p.Started.Before(*made[0].Began) {
			nameless = append(nameless, p)
		}
	}
	if len(nameless) == 1 {
		nameless[0].Pod, nameless[0].PodInferred = made[0].Pod, made[0].Pod != ""
	}
}
