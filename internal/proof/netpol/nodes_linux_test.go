package netpol_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/proof/netpol"
)

// withNodes measures a case with the nodes in the table.
func withNodes(t *testing.T, w *world, name string, settle time.Duration) (netpol.Report, error) {
	t.Helper()
	w.probe = buildProbe(t)
	return w.run(t.Context(), netpol.Options{Model: standard(t, netpol.MinPods), Cases: theCase(t, name), Nodes: true,
		Settle: settle})
}

// Nodes are in the table, in a namespace of their own, and traffic between a pod and its own node is judged.
func TestNodesAreInTheTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 121)
	// x/a is on lin-1, x/b on win-1.
	planted := map[string]bool{"node/lin-1→x/a TCP/8080": false, "x/b→node/win-1 UDP/8081": false}
	w.wrong = func(from, to, port string) (passes, decided bool) {
		passes, decided = planted[from+"→"+to+" "+port]
		return passes, decided
	}
	report, err := withNodes(t, w, "deny-both", wrongSettle)
	var differs *netpol.DiffersError
	if !errors.As(err, &differs) || len(report.Cases) != 2 {
		t.Fatalf("the error is %v\n%+v", err, report)
	}
	got := map[string]bool{}
	for _, d := range report.Cases[1].Differences {
		got[d.From+"→"+d.To+" "+d.Port] = d.Outcome == "connected"
	}
	if diff := cmp.Diff(planted, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Each of the two pods of x exchanges undefined traffic with the other node, both ways, on four ports.
	if c := report.Cases[1]; c.Undefined != 2*2*4 {
		t.Errorf("%d cells are undefined", c.Undefined)
	}
	if s := report.Sentence(); !strings.HasPrefix(s, "6 pods, 2 nodes, 2 cases, ") {
		t.Error(s)
	}
	w.nothingIsLeft(t)
}

// A network that blocks all traffic for which policies are undefined is right, and so is one that lets it pass.
func TestUndefinedTrafficIsNotJudged(t *testing.T) {
	t.Parallel()
	for i, mark := range []string{"b", "o"} {
		t.Run(mark, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, byte(122+i))
			w.strict = mark == "b"
			report, err := withNodes(t, w, "deny-both", 0)
			if err != nil {
				t.Fatal(err)
			}
			marks := ""
			for _, table := range report.Cases[1].Tables {
				for _, row := range table.Rows {
					marks += strings.Trim(row, ".x-")
				}
			}
			if !strings.Contains(marks, mark) || strings.Trim(marks, mark+".x-") != "" {
				t.Errorf("the tables have the marks %q", marks)
			}
		})
	}
}

// A firewall of the nodes is no fault of the policies: what it blocks without policies is not judged.
func TestAFirewallOfANodeIsNotJudged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 124)
	w.shields = true
	report, err := withNodes(t, w, "deny-ingress", 0)
	if err != nil {
		t.Fatalf("%v\n%+v", err, report.Cases)
	}
	if before := report.Cases[0]; before.Undefined != 7*2*4 {
		t.Errorf("before: %d cells are undefined", before.Undefined)
	}
	for _, row := range report.Cases[1].Tables[0].Rows {
		if strings.Trim(row[6:], "b-") != "" {
			t.Errorf("the cells to nodes are %q", row[6:])
		}
	}
}

// The pods of nodes use their network, also on Windows, and only their namespace admits such pods.
func TestObjectsOfNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 125)
	seen := map[string]string{}
	w.looked = func() {
		pods, err := w.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
		for _, p := range pods.Items {
			n, err := w.client.CoreV1().Namespaces().Get(t.Context(), p.Namespace, metav1.GetOptions{})
			if err != nil {
				t.Error(err)
				continue
			}
			if p.Spec.HostNetwork {
				seen[p.Name] = describe(p) + " " + n.Labels["pod-security.kubernetes.io/enforce"]
			} else if n.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
				t.Errorf("the namespace of %s has the labels %v", p.Name, n.Labels)
			}
		}
	}
	if _, err := withNodes(t, w, "port", 0); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"lin-1": "linux privileged", "win-1": `HostProcess as NT AUTHORITY\LOCAL SERVICE privileged`}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func describe(p corev1.Pod) string {
	o := p.Spec.SecurityContext.WindowsOptions
	if o == nil || o.HostProcess == nil || !*o.HostProcess || slices.Contains([]string{""}, *o.RunAsUserName) {
		return "linux"
	}
	return "HostProcess as " + *o.RunAsUserName
}

// A run that compared nothing does not say that all was as it should be.
func TestNothingComparedIsNothingProved(t *testing.T) {
	t.Parallel()
	if s := (netpol.Report{}).Sentence(); s != "0 pods, 0 cases, 0 cells: nothing is proved in 0ms" {
		t.Error(s)
	}
}
