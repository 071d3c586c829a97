package netpol_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/proof/netpol"
	"github.com/swdt-dev/swdt/internal/ui"
)

// runs adds the DaemonSet of a pod network.
func (w *world) runs(daemonSet string) {
	w.t.Helper()
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "calico-system", Name: daemonSet}}
	if _, err := w.client.AppsV1().DaemonSets(d.Namespace).Create(context.Background(), d, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// onWindows reports whether a pod of the model is on the Windows node. w.mu must be held.
func (w *world) onWindows(name string) bool {
	list, err := w.client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Error(err)
	}
	return slices.ContainsFunc(list.Items, func(p corev1.Pod) bool {
		return w.short[p.Namespace+"/"+p.Name] == name && nodeOf(p) == "win-1"
	})
}

// likeFelix lets Windows pods of a case with a named port, or with except, behave as with Calico: the rule is missing, so
// the selected pod is isolated without an exception. selected has the pods that the policy selects.
func (w *world) likeFelix(egress bool, selected func(string) bool) {
	w.wrong = func(from, to, _ string) (passes, decided bool) {
		end := to
		if egress {
			end = from
		}
		return false, selected(end) && w.onWindows(end)
	}
}

func inX(name string) bool { return strings.HasPrefix(name, "x/") }

// isXB selects a pod on the Windows node.
func isXB(name string) bool { return name == "x/b" }

func TestKnownLimitsAreNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 71)
	w.probe = buildProbe(t)
	w.dig(8080, 8081)
	w.runs("calico-node-windows")
	w.likeFelix(false, inX)
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, netpol.MinPods), Cases: theCase(t, "port-name")})
	if err != nil || report.Result != netpol.KnownLimit || len(report.Names()) > 0 {
		t.Fatalf("%v, %s, %q", err, report.Result, report.Names())
	}
	c := report.Cases[1]
	if c.Result != netpol.KnownLimit || c.Limited == 0 || c.Wrong != 0 || len(c.Differences) > 0 || !c.Released {
		t.Errorf("%+v", c)
	}
	if len(report.Limits) != 1 || report.Limits[0].Network != "Calico" || !strings.HasPrefix(report.Limits[0].Source, "https://") {
		t.Errorf("%+v", report.Limits)
	}
	var text strings.Builder
	if err := report.WriteText(ui.NewPage(&text, false)); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"known limit", "skips rules with named ports", "policysets.go", " l "} {
		if !strings.Contains(text.String(), words) {
			t.Errorf("the text lacks %q:\n%s", words, text.String())
		}
	}
	var page strings.Builder
	if err := report.WritePage(&page); err != nil || !strings.Contains(page.String(), "known limit: Calico") {
		t.Errorf("%v\n%s", err, page.String())
	}
}

// An except for egress is a limit, too, and a cell that differs for another reason still fails the run.
func TestOtherDifferencesStillFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 72)
	w.probe = buildProbe(t)
	w.dig(8080, 8081)
	w.runs("calico-node-windows")
	w.likeFelix(true, isXB)
	limited := w.wrong
	w.wrong = func(from, to, port string) (passes, decided bool) {
		if from == "y/b" && to == "z/a" && port == "TCP/8080" {
			return false, true
		}
		return limited(from, to, port)
	}
	cases := theCase(t, "ip-block-except")
	cases[0].Policies[0].Spec.PodSelector.MatchLabels = map[string]string{"pod": "b"}
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, netpol.MinPods), Cases: cases, Settle: wrongSettle})
	var differs *netpol.DiffersError
	if !errors.As(err, &differs) || differs.Wrong != 1 || report.Result != netpol.Differs || report.Cases[1].Limited == 0 {
		t.Fatalf("%v, %+v", err, report.Cases)
	}
}

// A network without a known limit has none: the same cells are wrong.
func TestOtherNetworksHaveNoLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 73)
	w.probe = buildProbe(t)
	w.dig(8080, 8081)
	w.runs("antrea-agent-windows")
	w.likeFelix(false, inX)
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, netpol.MinPods), Cases: theCase(t, "port-name"),
		Settle: wrongSettle})
	var differs *netpol.DiffersError
	if !errors.As(err, &differs) || report.Cases[1].Limited != 0 || len(report.Limits) > 0 {
		t.Fatalf("%v, %+v", err, report.Cases)
	}
}

// With a later Calico that enforces them, the cells are as meant.
func TestALimitThatIsGoneIsAsMeant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 74)
	w.probe = buildProbe(t)
	w.dig(8080, 8081)
	w.runs("calico-node-windows")
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, netpol.MinPods), Cases: theCase(t, "port-name", "ip-block-except")})
	if err != nil || report.Result != netpol.AsMeant || len(report.Limits) > 0 {
		t.Fatalf("%v, %s, %+v", err, report.Result, report.Limits)
	}
}
