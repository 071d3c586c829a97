package programmed_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/inspect/programmed"
)

func nodeWith(name string, settled bool, findings ...kubeproxy.Finding) programmed.Node {
	return programmed.Node{Outcome: fleet.NewOutcome(name, fleet.OK, nil), Proxy: programmed.Proxy{Runs: true, Settled: settled, Configured: true},
		Report: kubeproxy.Report{Findings: findings}}
}

// TestPlan checks the order of the steps, that each object and each Service has one, and which findings have none.
func TestPlan(t *testing.T) {
	missing := kubeproxy.Finding{Kind: kubeproxy.Missing, Service: "shop/web", At: "10.96.0.20:80/tcp"}
	all := []kubeproxy.Finding{
		missing, {Kind: kubeproxy.Missing, Service: "shop/web", At: "node port 30080/tcp (IPv4)"},
		{Kind: kubeproxy.StaleRemote, ID: "E1", At: "10.244.2.9"}, {Kind: kubeproxy.Doubled, ID: "E2", At: "10.244.2.8"},
		{Kind: kubeproxy.RemoteTwin, ID: "E3"}, {Kind: kubeproxy.Foreign, ID: "L9"}, {Kind: kubeproxy.Conflict, Service: "shop/greedy"},
		{Kind: kubeproxy.LostPod, Service: "shop/web"}, {Kind: kubeproxy.Unready, Service: "shop/far"},
		{Kind: kubeproxy.Flags, ID: "L1", Service: "shop/api"}, {Kind: kubeproxy.Target, ID: "L1", Service: "shop/api"},
		{Kind: kubeproxy.Stale, ID: "L2"}, {Kind: kubeproxy.NoPorts, ID: "L3"},
	}
	report := programmed.Report{Nodes: []programmed.Node{nodeWith("win-1", true, all...), nodeWith("win-2", true, missing),
		nodeWith("win-3", false, all...)}}
	var got []string
	for _, r := range programmed.Plan(report) {
		got = append(got, r.Node+" "+string(r.Action)+" "+r.ID+r.Service)
		if r.Breaks == "" || r.Result != programmed.WouldRepair {
			t.Errorf("%+v", r)
		}
	}
	want := []string{"win-1 removeLoadBalancer L2", "win-1 removeLoadBalancer L3", "win-1 removeLoadBalancer L1shop/api",
		"win-1 removeEndpoint E1", " touchService shop/api", " touchService shop/web"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if slices.ContainsFunc(programmed.Plan(report), func(r programmed.Repair) bool { return r.Node == "win-3" }) {
		t.Error("a node whose kube-proxy synchronizes is repaired")
	}
	report.Nodes[0].Proxy.Configured = false
	if slices.ContainsFunc(programmed.Plan(report), func(r programmed.Repair) bool { return r.Node == "win-1" }) {
		t.Error("a node whose kube-proxy does not serve its settings is repaired")
	}
}

// TestVerify checks that a touch counts as failed if a node still needs it.
func TestVerify(t *testing.T) {
	missing := kubeproxy.Finding{Kind: kubeproxy.Missing, Service: "shop/web", At: "10.96.0.20:80/tcp"}
	done := touchOf("shop/web", "shop/api")
	for i := range done {
		done[i].Result = programmed.Repaired
	}
	got := programmed.Verify(done, programmed.Report{Nodes: []programmed.Node{nodeWith("win-1", true, missing)}})
	if got[0].Result != programmed.Failed || got[0].Error == "" || got[1].Result != programmed.Repaired {
		t.Errorf("%+v", got)
	}
}
