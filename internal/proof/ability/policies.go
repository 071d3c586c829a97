package ability

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/netpol"
)

// policyCases are the standard cases of package netpol that a run measures: one for each direction, with
// selectors and with ports.
func policyCases() []string {
	return []string{"deny-ingress", "namespace-and-pod", "port", "egress-port"}
}

// policies proves that the pod network enforces NetworkPolicies for pods on each Windows node. "swdt netpol run"
// has all cases, and the tables.
func (w *run) policies(ctx context.Context, on []cluster.Node) []Result {
	report, err := w.measurePolicies(ctx)
	var differs *netpol.DiffersError
	if errors.As(err, &differs) {
		err = nil // the report has the differences
	}
	var results []Result
	for _, n := range on {
		r := Result{Node: n.Name, Build: n.KernelVersion, Probe: NetworkPolicy, Seconds: report.Seconds}
		verdict := tried(err)
		if err == nil {
			verdict = judge(n.Name, report)
		}
		r.Result, r.Message = resultOf(ctx, verdict)
		results = append(results, r)
	}
	return results
}

func (w *run) measurePolicies(ctx context.Context) (netpol.Report, error) {
	model, err := netpol.Standard(min(netpol.MaxPods, max(netpol.MinPods, 2*len(w.nodes))), corev1.ProtocolTCP)
	if err != nil {
		return netpol.Report{}, err
	}
	cases, err := netpol.Cases()
	if err != nil {
		return netpol.Report{}, err
	}
	cases = slices.DeleteFunc(cases, func(c netpol.Case) bool { return !slices.Contains(policyCases(), c.Name) })
	return netpol.Run(ctx, w.c, netpol.Options{Model: model, Cases: cases, Image: w.Image, LinuxImage: w.LinuxImage,
		Wait: w.Wait, Reporter: w.Reporter, Records: w.Records, Execs: w.Access, Program: w.Program})
}

// judge returns an error if cells of the tables from or to pods of a node differ from what the policies mean.
func judge(node string, report netpol.Report) error {
	on := map[string]bool{}
	for _, p := range report.Pods {
		on[p.Name] = p.Node == node
	}
	if !slices.ContainsFunc(report.Pods, func(p netpol.PodReport) bool { return p.Node == node }) {
		return tried(errors.New("no pod of the table was on the node"))
	}
	count, first := 0, ""
	for _, c := range report.Cases {
		for _, d := range c.Differences {
			if !on[d.From] && !on[d.To] {
				continue
			}
			if count++; first == "" {
				first = c.Name + ": " + d.String()
			}
		}
	}
	if count == 0 {
		return nil
	}
	cells := "1 cell differs"
	if count > 1 {
		cells = fmt.Sprintf("%d cells differ", count)
	}
	return fmt.Errorf("%s (%s from what the policies mean); `swdt netpol run` has the tables", first, cells)
}
