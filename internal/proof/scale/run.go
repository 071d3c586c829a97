package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

const (
	// DefaultMetricsURL is where kube-proxy serves its metrics by default, on the node itself.
	DefaultMetricsURL = kubeproxy.DefaultMetricsURL
	// DefaultProxy is the name of kube-proxy's process without its .exe, and of its log.
	DefaultProxy = "kube-proxy"
	// DefaultWait is how long a run waits for a node that makes no progress.
	DefaultWait = 5 * time.Minute
	// DefaultWriters and DefaultRate bound the requests to the API server.
	DefaultWriters, DefaultRate = 8, 100
)

// Options configure a run.
type Options struct {
	Load  Load
	Nodes []Target // at least one
	// Writers is the number of requests at the same time. 0: DefaultWriters.
	Writers int
	// Rate is the largest number of requests a second; 0: no limit.
	Rate float64
	// Wait is how long to wait for a node that makes no progress. 0: DefaultWait.
	Wait time.Duration
	// Slow is the time after which a Service that is not programmed is a fault; 0: none.
	Slow time.Duration
	// Interval is the shortest time between two looks at HNS, and the time between two samples of the
	// processes and metrics. 0: a second.
	Interval time.Duration
	// MetricsURL is where kube-proxy serves its metrics, from the node. "": DefaultMetricsURL.
	MetricsURL string
	// Proxy is the name of the process without its .exe, and of its log. "": DefaultProxy.
	Proxy string
	// Folder is an empty folder for the results; it is made if it does not exist.
	Folder string
	// Records are the records of runs; nil: this user's.
	Records *leftover.Store
	// Reporter returns the reporter of a node, or of the run for "". nil: nothing is reported.
	Reporter func(node string) ui.Reporter
}

func (o Options) completed() Options {
	o.Writers = cmp.Or(o.Writers, DefaultWriters)
	o.Wait = cmp.Or(o.Wait, DefaultWait)
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	o.MetricsURL = cmp.Or(o.MetricsURL, DefaultMetricsURL)
	o.Proxy = cmp.Or(o.Proxy, DefaultProxy)
	if o.Reporter == nil {
		o.Reporter = func(string) ui.Reporter { return ui.Discard{} }
	}
	return o
}

// namespacePrefix begins the name of the namespace of a run; the rest is from the ID of the run's record.
const namespacePrefix = "swdt-scale-"

// run is one run.
type run struct {
	Options
	c      *cluster.Cluster
	r      ui.Reporter
	board  *board
	nodes  []*watcher
	record *leftover.Run
	writer *writer
	report Report
	phases map[*watcher][]NodePhase
}

// Run measures the nodes. It removes all that it has made, also if it fails or ctx ends, and writes the
// results into o.Folder. The error is a *FailedError if a node did not program all Services in time. Any
// other error means that the run itself failed; if nothing was made, the report has no folder.
func Run(ctx context.Context, c *cluster.Cluster, o Options) (report Report, err error) {
	o = o.completed()
	w := &run{Options: o, c: c, r: o.Reporter(""), phases: map[*watcher][]NodePhase{}}
	w.report = Report{Result: Incomplete, Cluster: c.Server(), Load: o.Load, Begin: time.Now().UTC(),
		Leftovers: []string{}, Phases: []PhaseWrites{}, Nodes: []NodeReport{}}
	defer ui.Done(w.r)
	if err := w.prepare(ctx); err != nil {
		return w.report, err
	}
	if w.report.Folder, err = localfile.EmptyFolder(o.Folder); err != nil {
		return w.report, err
	}
	defer interrupt.AllowTime(ctx, leftover.EndLimit)()
	w.report.Leftovers = append(w.report.Leftovers, w.Records.Tidy(ctx, c, w.r)...)
	err = w.measure(ctx)
	w.report.Seconds = time.Since(w.report.Begin).Seconds()
	for _, n := range w.nodes {
		summary := n.summary()
		summary.Phases = append(summary.Phases, w.phases[n]...)
		w.report.Nodes = append(w.report.Nodes, summary)
	}
	w.report = w.report.judged(err)
	if err == nil {
		err = w.report.Failure()
	}
	return w.report, errors.Join(err, w.report.Save())
}

// prepare looks at the cluster and at the nodes, and makes nothing.
func (w *run) prepare(ctx context.Context) (err error) {
	if err := w.Load.Check(); err != nil {
		return err
	}
	w.r.Step("look at the cluster")
	if w.report.Kubernetes, err = w.c.Version(ctx); err != nil {
		return err
	}
	if w.report.Others, err = countServices(ctx, w.c); err != nil {
		return err
	}
	if w.Records == nil {
		if w.Records, err = leftover.OpenDefault(); err != nil {
			return err
		}
	}
	for _, target := range w.Nodes {
		w.nodes = append(w.nodes, newWatcher(target, w.Options))
	}
	w.board = newBoard(w.nodes)
	w.r.Step("look at the nodes")
	for _, n := range w.nodes {
		n.board = w.board
		if err := n.prepare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// countServices returns the number of Services in the cluster.
func countServices(ctx context.Context, c *cluster.Cluster) (count int, err error) {
	err = cluster.Pages(ctx, c.Clientset().CoreV1().Services(metav1.NamespaceAll).List,
		func(page *corev1.ServiceList) { count += len(page.Items) })
	return count, c.Failure("list the Services", cluster.Permission{Verb: "list", Resource: "services"}, err)
}

// measure makes the namespace, and runs the phases. At its end, or at the end of ctx, it removes the
// namespace.
func (w *run) measure(ctx context.Context) (err error) {
	if w.record, err = w.Records.BeginOwn(w.c.Server()); err != nil {
		return err
	}
	removed := false
	remove := func() error {
		if removed {
			return nil
		}
		removed = true
		_, err := w.record.End(ctx, w.c)
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	w.report.Namespace = namespacePrefix + w.record.ID[:8]
	if err := w.makeNamespace(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for _, n := range w.nodes {
		running.Go(func() { n.watch(watching) })
	}
	w.writer = newWriter(w.c, w.report.Namespace, w.Options, w.board)
	if err := w.runPhases(ctx, remove); err != nil {
		return err
	}
	stop()
	running.Wait()
	for _, n := range w.nodes {
		n.readLog(ctx, w.report.Begin)
	}
	return context.Cause(ctx)
}

func (w *run) makeNamespace(ctx context.Context) error {
	return w.record.MakeNamespace(ctx, w.c, w.report.Namespace,
		map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
}

// runPhases runs the phases in their order.
func (w *run) runPhases(ctx context.Context, remove func() error) error {
	err := w.phase(ctx, Create, fmt.Sprintf("make %d Services with %d endpoints", w.Load.Services, w.Load.Endpoints),
		func() error { return w.writer.each(ctx, w.Load.Services, w.writer.create) })
	if err == nil && w.Load.Changes > 0 {
		err = w.phase(ctx, Churn, fmt.Sprintf("replace %d endpoints", w.Load.Changes),
			func() error { return w.writer.each(ctx, w.Load.Changes, w.writer.change) })
	}
	if err != nil {
		return err
	}
	return w.phase(ctx, Remove, "remove namespace "+w.report.Namespace, func() error {
		begin := time.Now()
		err := w.writer.each(ctx, 1, func(ctx context.Context, _ int) error { return w.writer.request(ctx, remove) })
		w.writer.removed(begin)
		return err
	})
}

// phase runs one phase: it writes, and waits until all nodes have programmed what was written, or until a
// node makes no progress any more.
func (w *run) phase(ctx context.Context, name, doing string, write func() error) error {
	w.r.Step("%s", doing)
	marks := map[*watcher]mark{}
	for _, n := range w.nodes {
		marks[n] = n.begin(ctx)
	}
	w.board.begin(name)
	err := write()
	for _, n := range w.nodes {
		n.written()
	}
	w.report.Phases = append(w.report.Phases, PhaseWrites{Phase: name, Writes: w.writer.report()})
	if err == nil {
		w.r.Step("wait until the nodes have programmed it")
		w.await(ctx)
		err = context.Cause(ctx)
	}
	for _, n := range w.nodes {
		report := n.end(ctx, name, marks[n])
		w.specify(ctx, n, &report)
		w.phases[n] = append(w.phases[n], report)
	}
	return err
}

// await waits until each node is done, or has made no progress for w.Wait.
func (w *run) await(ctx context.Context) {
	tick := time.NewTicker(w.Interval)
	defer tick.Stop()
	for {
		waiting := false
		for _, n := range w.nodes {
			if !n.done() && time.Since(w.board.progress(n)) < w.Wait {
				waiting = true
			}
		}
		if !waiting {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// specify finds out more about the faults of a phase, by one more look.
func (w *run) specify(ctx context.Context, n *watcher, p *NodePhase) {
	if p.FaultCount == 0 || ctx.Err() != nil {
		return
	}
	found, err := n.balancers.read(ctx, w.board.isOurs)
	p.specify(func(address string) bool {
		vip, parsed := netip.ParseAddr(address)
		_, has := found[vip]
		return parsed == nil && has
	}, err == nil)
}
