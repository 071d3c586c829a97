package join_test

import (
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// strikes interrupt sessions and kubeadm. Operations of services and of the guardian are
// not among the points: the tests of package swap interrupt the guardian.
func strikes() nodetest.Strikes {
	const kubeadm = "kubeadm.exe"
	return nodetest.Strikes{
		Asker: func(op simulated.Operation) string {
			switch {
			case nodetest.Session(op):
				return "session"
			case op.Process == kubeadm:
				return kubeadm
			}
			return ""
		},
		Dying: []string{kubeadm},
	}
}

// oneIn is the number of points of which one is interrupted.
const oneIn = 11

// oneInExchange is oneIn for a run with few points.
const oneInExchange = 7

// TestAJoinThatIsInterruptedAnywhereIsFinishedByTheNext interrupts a join at
// each of its changes and runs it again.
func TestAJoinThatIsInterruptedAnywhereIsFinishedByTheNext(t *testing.T) {
	var points []nodetest.Point
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		points = strikes().Points(l.Node, func() { l.mustJoin() })
	})
	if len(points) < 100 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	t.Logf("%d points", len(points))
	strikes().EachInBubble(t, points, oneIn, func(t *testing.T, strike nodetest.Strike) {
		l := newLab(t)
		struck := l.Strike(strike)
		results, err := l.join()
		if !struck.Load() {
			t.Fatalf("the join never came to this point: %v\n%s", err, table(results))
		}
		l.Restore()
		results, err = l.join()
		if err != nil {
			t.Fatalf("the next join: %v\n%s", err, table(results))
		}
		l.isReady()
		l.noToken()
		again, err := l.join()
		nothing(t, again, err)
	})
}

// TestAnExchangeThatIsInterruptedAnywhereIsFinishedByTheNext does the same with a join that
// installs a containerd of another generation, which does not start with the present
// configuration.
func TestAnExchangeThatIsInterruptedAnywhereIsFinishedByTheNext(t *testing.T) {
	begin := func(t *testing.T) *lab {
		l := newLab(t)
		l.mustJoin()
		l.spec().Containerd.Version, l.spec().Containerd.PauseImage = "2.4.2", "example.com/pause:1"
		return l
	}
	var points []nodetest.Point
	synctest.Test(t, func(t *testing.T) {
		l := begin(t)
		points = strikes().Points(l.Node, func() { l.mustJoin() })
	})
	if len(points) < 20 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	t.Logf("%d points", len(points))
	strikes().EachInBubble(t, points, oneInExchange, func(t *testing.T, strike nodetest.Strike) {
		l := begin(t)
		struck := l.Strike(strike)
		results, err := l.join()
		if !struck.Load() {
			t.Fatalf("the join never came to this point: %v\n%s", err, table(results))
		}
		l.Restore()
		if l.pid("containerd") == 0 {
			t.Error("containerd does not run")
		}
		if results, err = l.join(); err != nil {
			t.Fatalf("the next join: %v\n%s", err, table(results))
		}
		if l.isReady().Runtime != "containerd://2.4.2" || !strings.Contains(l.get(containerdToml), "example.com/pause:1") {
			t.Errorf("%s runs with\n%s", l.isReady().Runtime, l.get(containerdToml))
		}
		l.nothingBeside(containerdToml)
		again, err := l.join()
		nothing(t, again, err)
	})
}

// TestAResetThatIsInterruptedAnywhereIsFinishedByTheNext does the same with a reset.
func TestAResetThatIsInterruptedAnywhereIsFinishedByTheNext(t *testing.T) {
	var points []nodetest.Point
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		points = strikes().Points(l.Node, func() {
			if results, err := l.resetWith(resetAll(l)); err != nil {
				t.Fatalf("%v\n%s", err, table(results))
			}
		})
	})
	if len(points) < 40 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	t.Logf("%d points", len(points))
	strikes().EachInBubble(t, points, oneIn, func(t *testing.T, strike nodetest.Strike) {
		l := newLab(t)
		before := l.state()
		l.mustJoin()
		struck := l.Strike(strike)
		results, err := l.resetWith(resetAll(l))
		if !struck.Load() {
			t.Fatalf("the reset never came to this point: %v\n%s", err, table(results))
		}
		l.Restore()
		if results, err := l.resetWith(resetAll(l)); err != nil {
			t.Fatalf("the next reset: %v\n%s", err, table(results))
		}
		l.isAsBefore(before)
		again, err := l.resetWith(resetAll(l))
		nothing(t, again, err)
	})
}

// noToken checks that no bootstrap token is left, nor a file that contained one.
func (l *lab) noToken() {
	l.t.Helper()
	secrets, err := l.cluster.Clientset().CoreV1().Secrets(metav1.NamespaceSystem).List(l.t.Context(),
		metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		if secret.Type == "bootstrap.kubernetes.io/token" {
			l.t.Errorf("left in the cluster: Secret %s", secret.Name)
		}
	}
	for _, path := range []string{layout.JoinConfiguration, layout.JoinConfiguration + ".swdt-new",
		`C:\etc\kubernetes\bootstrap-kubelet.conf`} {
		if l.get(path) != "" {
			l.t.Errorf("left on the machine: %s", path)
		}
	}
}
