package netpol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/proof/probebin"
	"github.com/swdt-dev/swdt/internal/proof/probepod"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

const (
	// DefaultSettle is how long a policy may take to bind.
	DefaultSettle = 20 * time.Second
	// DefaultProbeTimeout bounds an attempt to reach a port.
	DefaultProbeTimeout = 2 * time.Second
	// starts is the number of pods that get the probe at the same time.
	starts = 8
)

// Options select what to measure.
type Options struct {
	Model Model
	Cases []Case
	// Nodes adds the nodes themselves to the table, by pods that use their network.
	Nodes bool
	// Image is the image of the pods on Windows, LinuxImage that of the others. Empty: smoke.DefaultImage.
	Image, LinuxImage string
	// Wait bounds the start of each pod, Settle the time until a policy binds, ProbeTimeout an attempt.
	// 0: the default.
	Wait, Settle, ProbeTimeout time.Duration
	// Reporter returns the reporter of a pod, or of the run for "". nil: nothing is reported.
	Reporter func(pod string) ui.Reporter
	// Records has the records of runs; nil: the user's.
	Records *leftover.Store
	// Execs gives access to the containers; nil: the cluster.
	Execs probepod.Execs
	// Program returns the probe for a system and a processor; nil: those inside this swdt.
	Program func(system, processor string) ([]byte, error)
}

func (o Options) completed(c *cluster.Cluster) (Options, error) {
	o.Image = cmp.Or(o.Image, smoke.DefaultImage)
	o.LinuxImage = cmp.Or(o.LinuxImage, smoke.DefaultImage)
	o.Wait = cmp.Or(o.Wait, smoke.DefaultWait)
	o.Settle = cmp.Or(o.Settle, DefaultSettle)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, DefaultProbeTimeout)
	if o.Reporter == nil {
		o.Reporter = func(string) ui.Reporter { return ui.Discard{} }
	}
	if o.Execs == nil {
		o.Execs = c
	}
	if o.Program == nil {
		o.Program = probebin.Embedded
	}
	var err error
	if o.Records == nil {
		o.Records, err = leftover.OpenDefault()
	}
	return o, err
}

// run is one run.
type run struct {
	Options
	c        *cluster.Cluster
	r        ui.Reporter
	record   *leftover.Run
	model    Model // with the namespaces, nodes and addresses of the cluster
	sessions []*probepod.Session
	absent   map[[2]int]bool // pod and port that its system does not have
	nodes    map[string]cluster.Node
	// closed has the cells to nodes that are blocked without policies, such as by the firewall of the node.
	closed map[place]bool
	// limit is the known limit of the pod network; nil: none.
	limit *limit
	// notes say which nodes are not in the table although Options.Nodes is set, and why.
	notes []string
}

// place is the place of a cell in the tables: indexes of pods and of the port.
type place struct{ from, to, port int }

// Run makes the pods, measures the table without policies and then that of each case, and removes all that
// it has made, also if it fails or ctx ends. It also removes the namespaces of runs that were killed. The
// error is a *DiffersError if a cell is not as the policies mean. Any other error means that the tables
// could not be measured; the report then has the cases before it.
func Run(ctx context.Context, c *cluster.Cluster, o Options) (report Report, err error) {
	begin := time.Now()
	report = Report{Result: Unmeasured, Cluster: c.Server(), Begin: begin.UTC(), Pods: []PodReport{},
		Ports: o.Model.portNames(), Unsupported: []string{}, Limits: []Limit{}, Leftovers: []string{}, Cases: []CaseReport{}}
	if o, err = o.completed(c); err != nil {
		return report, err
	}
	w := &run{Options: o, c: c, r: o.Reporter(""), absent: map[[2]int]bool{}, nodes: map[string]cluster.Node{},
		closed: map[place]bool{}}
	defer ui.Done(w.r)
	defer interrupt.AllowTime(ctx, leftover.EndLimit)()
	report.Leftovers = append(report.Leftovers, o.Records.Tidy(ctx, c, w.r)...)
	nodes, err := nodesFor(ctx, c)
	if err != nil {
		return report, err
	}
	if w.record, err = o.Records.BeginOwn(c.Server()); err != nil {
		return report, err
	}
	defer func() {
		w.r.Step("removing the namespaces")
		_, failed := w.record.End(ctx, c)
		err = errors.Join(err, failed)
	}()
	w.model = w.placed(nodes, w.record.Labels())
	probing, cancel := context.WithCancel(ctx)
	defer cancel() // ends the probes before the namespaces are removed
	err = w.measure(probing, nodes, &report)
	report = report.judged(time.Since(begin), err)
	if err != nil {
		return report, err
	}
	return report, report.Failure()
}

// measure makes the pods, and measures all cases.
func (w *run) measure(ctx context.Context, nodes []cluster.Node, report *Report) error {
	w.r.Step("making %s on %s", plural(len(w.model.Pods), "pod"), plural(len(nodes), "node"))
	if err := w.makeNamespaces(ctx); err != nil {
		return err
	}
	err := w.startPods(ctx)
	report.Pods, report.Unsupported = w.podReports(), w.unsupported()
	if err != nil {
		return err
	}
	w.limit = limitOf(ctx, w.c)
	for i, c := range append([]Case{{Name: Before, Proves: "without policies, all pods reach each other"}}, w.Cases...) {
		w.r.Step("case %d of %d: %s", i+1, len(w.Cases)+1, c.Name)
		measured, err := w.measureCase(ctx, c)
		report.Cases = append(report.Cases, measured)
		if measured.Limited > 0 && len(report.Limits) == 0 {
			report.Limits = append(report.Limits, w.limit.Limit)
		}
		if err != nil {
			return err
		}
		w.r.Info("%s", measured.sentence())
	}
	return nil
}

// startPods makes the pods, starts the probes in them and their servers.
func (w *run) startPods(ctx context.Context) error {
	w.sessions = make([]*probepod.Session, len(w.model.Pods))
	served := make([][]int, len(w.model.Pods))
	places := make(chan struct{}, starts)
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for i := range w.model.Pods {
		running.Go(func() {
			absent, err := w.startPod(ctx, starting, i, w.nodes[w.model.Pods[i].Node], places)
			if served[i] = absent; err != nil {
				cancel(err) // one pod that does not start is enough
			}
		})
	}
	running.Wait()
	for i, absent := range served {
		for _, port := range absent {
			w.absent[[2]int{i, port}] = true
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return context.Cause(starting)
}

// startPod makes a pod, and starts its probe, which runs until ctx ends. starting bounds the rest. It returns
// the indexes of the ports that the pod cannot serve.
func (w *run) startPod(ctx, starting context.Context, i int, node cluster.Node, places chan struct{}) ([]int, error) {
	p := &w.model.Pods[i]
	r := w.Reporter(p.Name())
	defer ui.Done(r)
	object, flag := w.object(*p, node), "--linux-image"
	if p.System == windows {
		flag = "--image"
	}
	pod := cluster.Pod{Namespace: object.Namespace, Name: object.Name}
	_, err := w.c.Clientset().CoreV1().Pods(pod.Namespace).Create(starting, object, metav1.CreateOptions{})
	if err != nil {
		return nil, w.refused("make pod "+pod.Name, "create", "pods", pod.Namespace, err)
	}
	running, err := smoke.Await(starting, w.c, pod, node, w.Wait, flag, r)
	if err != nil {
		return nil, fmt.Errorf("pod %s on node %s: %w", p.Name(), node.Name, err)
	}
	if p.Address, err = netip.ParseAddr(running.Status.PodIP); err != nil {
		return nil, fmt.Errorf("pod %s on node %s: its address: %w", p.Name(), node.Name, err)
	}
	select {
	case places <- struct{}{}:
	case <-starting.Done():
		return nil, context.Cause(starting)
	}
	r.Step("copying the probe into pod %s", pod)
	err = w.copyProbe(starting, pod, *p, node)
	<-places
	if err != nil {
		return nil, err
	}
	w.sessions[i] = probepod.Start(ctx, w.Execs, pod, p.place())
	return w.serve(starting, i)
}

func (w *run) copyProbe(ctx context.Context, pod cluster.Pod, p Pod, node cluster.Node) error {
	program, err := w.Program(p.System, processorOf(node))
	if err != nil {
		return err
	}
	return probepod.Upload(ctx, w.Execs, pod, p.place(), program)
}

// serve starts the servers of a pod. It returns the indexes of the ports that the pod cannot serve.
func (w *run) serve(ctx context.Context, i int) (absent []int, err error) {
	p := w.model.Pods[i]
	states, err := serve(ctx, w.sessions[i], p, w.model.Ports)
	if err != nil {
		return nil, err
	}
	for at, s := range states {
		switch {
		case s.Unsupported, p.Host && s.Error != "": // a program of the node may have the port
			absent = append(absent, at)
		case s.Error != "":
			return nil, fmt.Errorf("pod %s cannot serve %s: %s", p.Name(), w.model.Ports[at], s.Error)
		}
	}
	return absent, nil
}

// unsupported returns the protocols that the probe of a pod does not have.
func (w *run) unsupported() []string {
	all := slices.Clone(w.notes)
	for i, p := range w.model.Pods {
		for at, port := range w.model.Ports {
			switch {
			case !w.absent[[2]int{i, at}]:
			case p.Host:
				all = append(all, fmt.Sprintf("%s on node %s", port, p.Node))
			default:
				all = append(all, fmt.Sprintf("%s on %s", port.Protocol, cmp.Or(p.System, "?")))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// measureCase makes the policies of a case, measures, removes them and waits until all pods reach each other
// again.
func (w *run) measureCase(ctx context.Context, c Case) (CaseReport, error) {
	report := CaseReport{Name: c.Name, Proves: c.Proves, Policies: c.policyNames(), Result: Unmeasured,
		Differences: []Difference{}, Tables: []Table{}, LeftOut: append([]LeftOut{}, c.LeftOut...)}
	policies, err := w.model.realized(c.Policies)
	if err != nil {
		return report, err
	}
	all, err := w.model.cells(policies)
	if err != nil {
		return report, err
	}
	measured := slices.DeleteFunc(slices.Clone(all), func(c cell) bool {
		return w.absent[[2]int{c.from, c.port}] || w.absent[[2]int{c.to, c.port}]
	})
	limited, err := w.model.limitedCells(w.limit, policies, measured)
	if err != nil {
		return report, err
	}
	wanted, open := make([]wish, len(measured)), slices.Repeat([]wish{allow}, len(measured))
	for i, cell := range measured {
		if wanted[i] = wishOf(cell); limited[i] {
			wanted[i] = either
		}
		if w.isUnjudged(cell, c.Name == Before) {
			wanted[i], open[i] = whatever, whatever
		}
	}
	if err := w.apply(ctx, policies); err != nil {
		return report, errors.Join(err, w.withdraw(ctx, policies))
	}
	states, bound, err := w.settle(ctx, measured, wanted, time.Now())
	if err != nil {
		return report, err
	}
	report = report.withStates(w.model, all, measured, wanted, states, bound)
	if c.Name == Before {
		w.close(measured, states)
	}
	if len(policies) == 0 {
		return report, nil
	}
	if err := w.withdraw(ctx, policies); err != nil {
		return report, err
	}
	states, released, err := w.settle(ctx, measured, open, time.Now())
	report.Released = err == nil && !slices.ContainsFunc(states, func(s state) bool { return !s.right })
	if report.Released {
		report.ReleaseSeconds = released.Seconds()
	}
	return report, err
}

// isUnjudged reports whether a cell is right whatever its result is, since it leads to a node that may reject the
// connection by itself: in the first table, and later if it did.
func (w *run) isUnjudged(c cell, first bool) bool {
	return w.model.Pods[c.to].Host && (first || w.closed[place{c.from, c.to, c.port}])
}

// close notes the cells to nodes that do not pass without policies.
func (w *run) close(measured []cell, states []state) {
	for i, c := range measured {
		if w.model.Pods[c.to].Host && states[i].Outcome != netprobe.Connected {
			w.closed[place{c.from, c.to, c.port}] = true
		}
	}
}

// podReports returns the pods with their places.
func (w *run) podReports() []PodReport {
	all := []PodReport{}
	for _, p := range w.model.Pods {
		n, _ := w.model.namespace(p.Namespace)
		r := PodReport{Name: p.Name(), Namespace: n.Real, Node: p.Node, System: p.System, Host: p.Host}
		if p.Address.IsValid() {
			r.Address = p.Address.String()
		}
		all = append(all, r)
	}
	return all
}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		noun = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
