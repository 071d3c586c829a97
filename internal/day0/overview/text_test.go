package overview_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/overview"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Each state of the pod network, its line, and whether it is a finding (exit code 5).
func TestNetworks(t *testing.T) {
	known := fleet.Outcome{Name: "calico", Result: fleet.OK}
	works := podnetwork.Status{Network: "calico", Image: "operator:v1", Installed: "swdt",
		Settings:   []plan.StepResult{{Name: "operator", State: plan.OK, Message: "operator:v1"}},
		Conditions: []podnetwork.ConditionState{{Name: "TigeraStatus calico", Ready: true}}}
	setting, condition := works, works
	setting.Settings = []plan.StepResult{{Name: "strict affinity", State: plan.Skipped, Change: "turn strictAffinity on"}}
	condition.Conditions = []podnetwork.ConditionState{
		{Name: "TigeraStatus calico", Message: "Degraded: no typha\nand more"}}
	for name, c := range map[string]struct {
		network overview.Network
		line    string
		more    string // a further line; "" if there is none
		failed  bool
	}{
		"works": {network: overview.Network{Outcome: known, Wanted: "calico", Status: works},
			line: "pod network calico: works"},
		"missing": {network: overview.Network{Outcome: known, Wanted: "calico"}, failed: true,
			line: "pod network calico: not installed: `swdt network install` installs it"},
		"not swdt's": {network: overview.Network{Outcome: fleet.Outcome{Result: fleet.OK}, Wanted: "none"},
			line: "pod network: the cluster's document leaves it to other tools"},
		"of another tool, and it works": {network: overview.Network{Outcome: known, Wanted: "none", Status: works},
			line: "pod network calico: works"},
		"of another tool, and it does not work": {network: overview.Network{Outcome: known, Wanted: "none", Status: setting},
			line: "pod network calico: does not work", more: "  strict affinity: turn strictAffinity on", failed: true},
		"another one": {network: overview.Network{Outcome: known, Wanted: "flannel", Status: works}, failed: true,
			line: "pod network calico: the cluster has this one, but its document names flannel"},
		"a setting is missing": {network: overview.Network{Outcome: known, Wanted: "calico", Status: setting}, failed: true,
			line: "pod network calico: does not work", more: "  strict affinity: turn strictAffinity on"},
		"a condition does not hold": {network: overview.Network{Outcome: known, Wanted: "calico", Status: condition},
			line: "pod network calico: does not work", more: "  TigeraStatus calico: Degraded: no typha", failed: true},
		"unknown": {network: overview.Network{Wanted: "calico",
			Outcome: fleet.Outcome{Name: "calico", Result: fleet.Failed, Error: "forbidden\nin detail"}},
			line: "pod network calico: unknown: forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			report := overview.Report{Cluster: answering(), Network: c.network}
			want := "cluster dev: its API server answers\n  Kubernetes v1.36.3 at https://127.0.0.1:1, context kind-dev\n" +
				c.line + "\n"
			if c.more != "" {
				want += c.more + "\n"
			}
			if got := text(t, report, false); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if report.Failed() != c.failed {
				t.Errorf("Failed is %t", report.Failed())
			}
		})
	}
}

func answering() kindcluster.Report {
	return kindcluster.Report{Outcome: fleet.Outcome{Name: "dev", Result: fleet.OK}, Context: "kind-dev",
		Server: "https://127.0.0.1:1", Version: "v1.36.3"}
}

// A wide page has all settings of the network, and the components of the nodes.
func TestWidePage(t *testing.T) {
	report := overview.Report{Cluster: answering(), Network: overview.Network{
		Outcome: fleet.Outcome{Result: fleet.OK}, Wanted: "calico", Status: podnetwork.Status{Network: "calico",
			Settings: []plan.StepResult{{Name: "operator", State: plan.OK, Message: "operator:v1"}}}},
		Nodes: []overview.Node{{NodeStatus: reached("win-1", "").Status}}}
	wide, narrow := text(t, report, true), text(t, report, false)
	for _, part := range []string{"operator:v1", "crictl"} {
		if !strings.Contains(wide, part) || strings.Contains(narrow, part) {
			t.Errorf("%q is to be on the wide page alone:\n%s", part, wide)
		}
	}
}

// Texts that a node, a cluster or a VM made up add no line, and control no terminal.
func TestHostileTexts(t *testing.T) {
	const evil = "fine\x1b[2J\u202e\nwin-2  running  trusted\r\npod network calico: works"
	node := overview.Node{
		NodeStatus: push.NodeStatus{Name: "win-1", Result: fleet.OK, OS: push.OS{Product: evil, Build: evil},
			Components: []push.ComponentStatus{{Name: evil, Service: &push.Service{Name: evil, State: evil}}}},
		Machine:    &vm.Report{Name: "win-1", State: vm.Damaged, Reason: evil},
		Kubernetes: overview.Kubernetes{Node: evil, State: evil, KubeletVersion: evil, Registered: true},
	}
	ready, unknown := node, node
	ready.Kubernetes.Ready = true
	unknown.Kubernetes.Error, unknown.Error = evil, evil
	bad := answering()
	bad.Result, bad.Error = fleet.Failed, evil
	status := podnetwork.Status{Network: "calico", Image: evil,
		Settings:   []plan.StepResult{{Name: "operator", State: plan.Failed, Message: evil, Change: evil}},
		Conditions: []podnetwork.ConditionState{{Name: "TigeraStatus", Message: evil}}}
	network := overview.Network{Outcome: fleet.Outcome{Result: fleet.OK}, Wanted: "calico", Status: status}
	failed := overview.Network{Outcome: fleet.Outcome{Result: fleet.Failed, Error: evil}, Wanted: "calico"}
	for name, c := range map[string]struct {
		report overview.Report
		lines  int
	}{
		"known":   {overview.Report{Cluster: bad, Network: network, Nodes: []overview.Node{node, ready}}, 7},
		"unknown": {overview.Report{Cluster: bad, Network: failed, Nodes: []overview.Node{unknown}}, 4},
	} {
		got := text(t, c.report, false)
		if n := strings.Count(got, "\n"); n != c.lines {
			t.Errorf("%s: %d lines, want %d:\n%s", name, n, c.lines, got)
		}
		for _, part := range []string{"\x1b", "\u202e", "\r"} {
			if strings.Contains(got, part) {
				t.Errorf("%s: the page has %q:\n%q", name, part, got)
			}
		}
		for _, begin := range []string{"win-2", "pod network calico: works"} {
			if line(got, strings.TrimSuffix(begin, ": works")) == begin {
				t.Errorf("%s: a line is made up:\n%s", name, got)
			}
		}
	}
}
