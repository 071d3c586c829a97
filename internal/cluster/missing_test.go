package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestWhatANodeLacks changes one property of a node that has everything that is wanted.
func TestWhatANodeLacks(t *testing.T) {
	renewed := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	taint := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	wanted := Wanted{Registered: true, Ready: true, LeaseAfter: renewed.Add(-1), Allocatable: true,
		Labels: map[string]string{"a": "1", "b": ""}, Taints: []corev1.Taint{taint}}
	for name, test := range map[string]struct {
		change func(*Node)
		wanted Wanted
		want   []string
	}{
		"nothing":           {func(*Node) {}, wanted, nil},
		"an absent node":    {func(n *Node) { n.Exists = false }, wanted, []string{"registered"}},
		"nothing is wanted": {func(n *Node) { *n = Node{Exists: true} }, Wanted{Registered: true}, nil},
		"not Ready":         {func(n *Node) { n.Ready = false }, wanted, []string{"Ready"}},
		"an old lease": {func(n *Node) { n.LeaseRenewed = wanted.LeaseAfter }, wanted,
			[]string{"a lease renewed after 2026-11-24T11:59:59Z"}},
		"no CPU":        {func(n *Node) { n.Allocatable.MilliCPU = 0 }, wanted, []string{"allocatable CPU and memory"}},
		"no memory":     {func(n *Node) { n.Allocatable.MemoryBytes = 0 }, wanted, []string{"allocatable CPU and memory"}},
		"another value": {func(n *Node) { n.Labels["a"] = "2" }, wanted, []string{"label a=1"}},
		"no labels":     {func(n *Node) { n.Labels = nil }, wanted, []string{"label a=1", "label b="}},
		"another taint": {func(n *Node) { n.Taints[0].Value = "w" }, wanted, []string{"taint k=v:NoSchedule"}},
		"another effect": {func(n *Node) { n.Taints[0].Effect = corev1.TaintEffectNoExecute }, wanted,
			[]string{"taint k=v:NoSchedule"}},
	} {
		n := Node{Exists: true, Ready: true, LeaseRenewed: renewed, Allocatable: Resources{MilliCPU: 1, MemoryBytes: 1},
			Labels: map[string]string{"a": "1", "b": ""}, Taints: []corev1.Taint{taint}}
		test.change(&n)
		if got := test.wanted.missing(n); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q is missing, want %q", name, got, test.want)
		}
	}
}
