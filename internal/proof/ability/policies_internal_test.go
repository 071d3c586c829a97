package ability

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/proof/netpol"
)

// Cells that differ fail the probe on the nodes of both of their pods, and on no other, and the message names one.
func TestJudge(t *testing.T) {
	pods := []netpol.PodReport{{Name: "x/a", Node: "win-1"}, {Name: "x/b", Node: "lin-1"}, {Name: "y/a", Node: "win-2"},
		{Name: "y/b", Node: "win-1"}}
	leak := netpol.Difference{From: "x/a", To: "x/b", Port: "TCP/8080", Expected: "denied", Outcome: "connected"}
	block := netpol.Difference{From: "x/b", To: "y/b", Port: "TCP/8081", Expected: "allowed", Outcome: "timeout"}
	other := netpol.Difference{From: "y/a", To: "x/b", Port: "TCP/8080", Expected: "denied", Outcome: "connected"}
	report := func(differences ...netpol.Difference) netpol.Report {
		return netpol.Report{Pods: pods, Cases: []netpol.CaseReport{{Name: netpol.Before},
			{Name: "deny-ingress", Differences: differences}}}
	}
	for name, test := range map[string]struct {
		node   string
		report netpol.Report
		result string
		want   []string // parts of the message
	}{
		"all cells are as meant":    {"win-1", report(), Proved, nil},
		"a leak from the node":      {"win-1", report(leak), Failed, []string{"deny-ingress: ", "x/a", "x/b", "TCP/8080", "(1 cell"}},
		"a block to the node":       {"win-1", report(block), Failed, []string{"deny-ingress: ", "y/b", "TCP/8081", "(1 cell"}},
		"the first of two is named": {"win-1", report(other, leak, block), Failed, []string{"x/a", "TCP/8080", "(2 cells"}},
		"cells of other nodes":      {"win-1", report(other), Proved, nil},
		"the same cell on its node": {"win-2", report(leak, other), Failed, []string{"y/a", "(1 cell"}},
		"a node without pods":       {"win-3", report(leak), NotRun, []string{"no pod of the table was on the node"}},
		"no pods at all":            {"win-1", netpol.Report{}, NotRun, []string{"no pod of the table was on the node"}},
		"all cells of a node":       {"lin-1", report(leak, block, other), Failed, []string{"(3 cells"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, message := resultOf(t.Context(), judge(test.node, test.report))
			if result != test.result {
				t.Errorf("the result is %s, want %s: %s", result, test.result, message)
			}
			for _, want := range test.want {
				if !strings.Contains(message, want) {
					t.Errorf("the message lacks %q: %s", want, message)
				}
			}
		})
	}
}

// A table that was not measured is no verdict on any node, and an interruption neither.
func TestUnmeasuredPolicies(t *testing.T) {
	if result, message := resultOf(t.Context(), tried(errors.New("pod x/a did not start"))); result != NotRun ||
		message != "pod x/a did not start" {
		t.Errorf("%s: %s", result, message)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if result, _ := resultOf(ended, errors.New("any")); result != NotRun {
		t.Errorf("an interrupted probe is %s", result)
	}
}
