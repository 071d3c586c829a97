// Package programmed looks whether Windows nodes have programmed the Services of their cluster: it lists the cluster's
// objects, reads the Host Network Service (HNS) of each node and the settings of its kube-proxy, and compares both by the
// model of package kubeproxy.
//
//   - programmed.go: the look at one node, again and again until differences are certain
//   - source.go: the objects of the cluster, which all nodes share
//   - settings.go: the settings of a node's kube-proxy
//   - report.go: the result, and its text
package programmed

import (
	"context"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// DefaultSettle is the time between two looks at a node: kube-proxy synchronizes at most once a second by default, and
	// programs a change of a few Services within it.
	DefaultSettle = 5 * time.Second
	// DefaultWait bounds the wait for a synchronization to end.
	DefaultWait = time.Minute
	// maxLooks bounds the looks at a node. A difference counts if two looks one after the other find it.
	maxLooks = 4
)

// Options are the settings of a look.
type Options struct {
	Services []string // NAMESPACE/NAME or NAME; empty: all, and the objects of no Service
	Source   *Source
	Join     v1alpha1.Join // names the Node object
	// MetricsURL is the address of kube-proxy's metrics on the node.
	MetricsURL string
	Settle     time.Duration
	Wait       time.Duration
}

// Look compares the HNS of a node with the Services of the cluster. A difference that only one look finds is a change that
// kube-proxy has not programmed yet, and no finding.
func Look(ctx context.Context, n *node.Node, o Options, r ui.Reporter) (Node, error) {
	l := looker{Options: o, node: n, r: r}
	begun := time.Now()
	result, err := l.look(ctx)
	result.Seconds = time.Since(begun).Seconds()
	return result, err
}

// looker looks at one node.
type looker struct {
	Options
	node *node.Node
	r    ui.Reporter
	name string // of the Node object
}

func (l *looker) look(ctx context.Context) (Node, error) {
	name, err := l.node.ObjectName(ctx, l.Join)
	if err != nil {
		return Node{}, err
	}
	l.name = name
	p, err := l.proxy(ctx)
	if err != nil {
		return Node{}, err
	}
	result := Node{Proxy: p.Proxy, Report: kubeproxy.Report{Findings: []kubeproxy.Finding{}}, Pending: []string{}}
	if !p.Runs {
		result.Findings = append(result.Findings, noProxy())
		return result, nil
	}
	var before view
	for result.Looks = 1; ; result.Looks++ {
		v, err := l.once(ctx, &p)
		if err != nil {
			return Node{}, err
		}
		confirmed, open := v.since(before)
		if len(open) == 0 || result.Looks == maxLooks {
			result.finish(p, v, confirmed, open)
			return result, nil
		}
		before = v
		l.r.Step("%d differences: looking again, since kube-proxy may not have programmed them yet", len(open))
		if p, err = l.settle(ctx); err != nil {
			return Node{}, err
		}
		if !p.Runs {
			result.Proxy, result.Findings = p.Proxy, append(result.Findings, noProxy())
			return result, nil
		}
	}
}

func noProxy() kubeproxy.Finding {
	return kubeproxy.OfNode(kubeproxy.NoProxy, "`swdt ps` and `swdt logs kube-proxy` show why; if another program replaces kube-proxy, "+
		"such as Antrea, its load balancers are not kube-proxy's, and swdt does not judge them", "", "no process kube-proxy.exe runs on the node")
}

// view is the result of one look.
type view struct {
	*Snapshot
	kubeproxy.Report
	count, endpoints int // the number of the chosen Services, and that of their backends
}

// once lists the cluster's objects, and then those of HNS. A Service that changes between both shows as a difference.
func (l *looker) once(ctx context.Context, p *proxy) (view, error) {
	snapshot, err := l.Source.since(ctx, time.Now())
	if err != nil {
		return view{}, err
	}
	l.r.Step("reading the objects of HNS")
	state, err := hns.Read(ctx, l.node.Compute)
	if err != nil {
		return view{}, err
	}
	p.settings.NodeIP = snapshot.nodes[p.settings.Node]
	report := snapshot.cluster.Compare(p.settings, state)
	report.Findings = slices.DeleteFunc(report.Findings, func(f kubeproxy.Finding) bool { return !l.selects(f) })
	v := view{Snapshot: snapshot, Report: report}
	v.Wanted = report.WantedBy(l.chosen)
	for _, service := range snapshot.services {
		if l.chosen(service) {
			v.count++
			v.endpoints += snapshot.backends[service]
		}
	}
	return v, nil
}

// selects reports whether a finding is about one of the chosen Services.
func (l *looker) selects(f kubeproxy.Finding) bool {
	return l.chosen(f.Service) || f.Kind == kubeproxy.NoNetwork
}

// chosen reports whether a Service is one of the chosen ones.
func (l *looker) chosen(service string) bool {
	return len(l.Services) == 0 || slices.ContainsFunc(l.Services, func(name string) bool { return isNamed(service, name) })
}

// since divides the findings of a look: those that the look before had, too, of a Service that did not change meanwhile, and
// the others.
func (v view) since(before view) (confirmed, open []kubeproxy.Finding) {
	had := map[string]bool{}
	for _, f := range before.Findings {
		had[f.Key()] = true
	}
	for _, f := range v.Findings {
		same := before.Snapshot != nil && before.versions[f.Service] == v.versions[f.Service]
		if had[f.Key()] && same {
			confirmed = append(confirmed, f)
		} else {
			open = append(open, f)
		}
	}
	return confirmed, open
}

// settle waits at least Settle, and then until kube-proxy has finished its synchronization, at most Wait.
func (l *looker) settle(ctx context.Context) (p proxy, err error) {
	if err := wait.For(ctx, l.Settle); err != nil {
		return p, context.Cause(ctx)
	}
	for waited := l.Settle; ; waited += l.Settle {
		if p, err = l.proxy(ctx); err != nil || !p.Runs || !p.hasMetrics || p.Settled || waited >= l.Wait {
			return p, err
		}
		l.r.Step("kube-proxy is synchronizing")
		if err := wait.For(ctx, max(l.Settle, time.Millisecond)); err != nil {
			return p, context.Cause(ctx)
		}
	}
}

// finish sets the result of the last look.
func (n *Node) finish(p proxy, v view, confirmed, open []kubeproxy.Finding) {
	n.Proxy, n.Report = p.Proxy, v.Report
	n.Services, n.Backends = v.count, v.endpoints
	n.Findings = append([]kubeproxy.Finding{}, confirmed...)
	for _, f := range open {
		if len(n.Pending) < maxPending && !slices.Contains(n.Pending, f.Service) && f.Service != "" {
			n.Pending = append(n.Pending, f.Service)
		}
	}
	n.PendingCount = len(open)
	if p.hasMetrics && !p.Settled && n.Looks > 1 {
		n.Findings = slices.Insert(n.Findings, 0, kubeproxy.OfNode(kubeproxy.Syncing,
			"wait, and look again; if it lasts, read `swdt logs kube-proxy`: kube-proxy waits for HNS, which may hang", "",
			"kube-proxy has not finished a synchronization for longer than swdt waits, so the differences below may vanish"))
	}
}

// maxPending bounds the names of Services that change.
const maxPending = 20
