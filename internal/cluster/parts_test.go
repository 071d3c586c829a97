package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
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

func TestPodsForWindows(t *testing.T) {
	affinity := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.PodSpec {
		return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{}, {MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}}}}}}
	}
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"no preference":            {corev1.PodSpec{}, false},
		"the system Windows":       {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}, true},
		"the system Linux":         {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}}, false},
		"a selector of Windows":    {corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: "windows"}}, true},
		"a selector of Linux":      {corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: "linux"}}, false},
		"no affinity to nodes":     {corev1.PodSpec{Affinity: &corev1.Affinity{}}, false},
		"no required affinity":     {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}, false},
		"affinity to Windows":      {affinity(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux", "windows"), true},
		"affinity to Linux":        {affinity(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"), false},
		"affinity to others":       {affinity(corev1.LabelOSStable, corev1.NodeSelectorOpNotIn, "windows"), false},
		"affinity to a label":      {affinity("a", corev1.NodeSelectorOpIn, "windows"), false},
		"affinity against a label": {affinity("a", corev1.NodeSelectorOpNotIn, "b"), false},
	} {
		if got := forWindows(test.spec); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestConfigErrorsNameFilesAndContext(t *testing.T) {
	const remedy = "; name one with --kubeconfig or KUBECONFIG, a context with --context"
	for _, test := range []struct {
		err  ConfigError
		want string
	}{
		{ConfigError{Why: "it is empty"}, "read the kubeconfig: it is empty" + remedy},
		{ConfigError{Files: []string{"a", "b"}, Context: "c", Err: errors.New("broken"), Remedy: "correct it"},
			`read the kubeconfig (a, b), context "c": broken; correct it`},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if other := (&ConfigError{Err: errors.New("broken")}); other.NothingThere() {
		t.Error("a broken kubeconfig counts as none")
	}
	if none := (&ConfigError{Err: clientcmd.ErrEmptyConfig}); !none.NothingThere() {
		t.Error("no kubeconfig does not count as none")
	}
}
