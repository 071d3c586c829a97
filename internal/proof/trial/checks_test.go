package trial

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/suite"
)

func node(name, system string, change ...func(*cluster.Node)) cluster.Node {
	n := cluster.Node{Name: name, Exists: true, Ready: true, KernelVersion: "10.0.20348.2849",
		Labels: map[string]string{corev1.LabelOSStable: system}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func tainted(key string) func(*cluster.Node) {
	return func(n *cluster.Node) {
		n.Taints = append(n.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

func TestChecks(t *testing.T) {
	plane := node("cp", "linux", tainted("node-role.kubernetes.io/control-plane"))
	win := node("win-1", "windows")
	notReady := func(n *cluster.Node) { n.Ready = false }
	cordoned := func(n *cluster.Node) { n.Cordoned = true }
	for name, test := range map[string]struct {
		nodes   []cluster.Node
		version string // of e2e.test
		want    []string
	}{
		"healthy":         {[]cluster.Node{plane, win}, "v1.36.0", nil},
		"no Windows node": {[]cluster.Node{plane}, "", []string{"error windows-nodes"}},
		"not Ready": {[]cluster.Node{plane, node("win-1", "windows", notReady)}, "",
			[]string{"error windows-nodes"}},
		"one of two": {[]cluster.Node{plane, win, node("win-2", "windows", cordoned)}, "",
			[]string{"warning windows-nodes"}},
		"tainted": {[]cluster.Node{plane, node("win-1", "windows", tainted("os"))}, "",
			[]string{"error windows-taints"}},
		"Linux for all":      {[]cluster.Node{node("lin", "linux"), win}, "", []string{"warning linux-nodes"}},
		"one minor version":  {[]cluster.Node{plane, win}, "v1.35.9", []string{"warning version"}},
		"two minor versions": {[]cluster.Node{plane, win}, "v1.34.0", []string{"error version"}},
		"unknown build": {[]cluster.Node{plane, node("w", "windows", build("10.0.14393.1"))}, "",
			[]string{"warning windows-build"}},
		"a build without dot": {[]cluster.Node{plane, node("w", "windows", build("6.1"))}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.version == "" {
				test.version = "v1.36.3"
			}
			var got []string
			for _, f := range check(facts{nodes: test.nodes, kubernetes: "v1.36.3", kubectl: true,
				binary: suite.Binary{Version: test.version}}) {
				got = append(got, string(f.Severity)+" "+f.Check)
				if f.Remedy == "" || f.What == "" {
					t.Errorf("%+v has no remedy", f)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func build(version string) func(*cluster.Node) {
	return func(n *cluster.Node) { n.KernelVersion = version }
}

func TestMinor(t *testing.T) {
	for version, want := range map[string]int{"v1.36.3": 36, "v1.37.0-rc.1+x": 37, "1.35": 35, "v1.28+": 28, "v2.1": 0,
		"": 0, "v1": 0, "v1.x.3": 0} {
		if got, ok := minor(version); got != want || ok != (want > 0) {
			t.Errorf("%s: %d, %t", version, got, ok)
		}
	}
}
