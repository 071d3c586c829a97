package join_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/host/simulated"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/node/nodetest"
)

// strikes hit sessions and kubeadm. What services and the guardian do is not among
// the points: package swap interrupts the guardian.
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

// oneIn so many points is struck.
const oneIn = 11

// TestAJoinThatIsInterruptedAnywhereIsFinishedByTheNext interrupts a join at
// each of its changes and runs it again.
func TestAJoinThatIsInterruptedAnywhereIsFinishedByTheNext(t *testing.T) {
	l := newLab(t)
	points := strikes().Points(l.Node, func() { l.mustJoin() })
	if len(points) < 100 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	t.Logf("%d points", len(points))
	strikes().Each(t, points, oneIn, func(t *testing.T, strike nodetest.Strike) {
		l := newLab(t)
		struck := l.Strike(strike)
		results, err := l.join()
		if !struck.Load() {
			t.Fatalf("the join never came to this point: %v\n%s", err, table(results))
		}
		l.ComeBack()
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

// TestAResetThatIsInterruptedAnywhereIsFinishedByTheNext does so with a reset.
func TestAResetThatIsInterruptedAnywhereIsFinishedByTheNext(t *testing.T) {
	l := newLab(t)
	l.mustJoin()
	points := strikes().Points(l.Node, func() {
		if results, err := l.resetWith(resetAll(l)); err != nil {
			t.Fatalf("%v\n%s", err, table(results))
		}
	})
	if len(points) < 40 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	t.Logf("%d points", len(points))
	strikes().Each(t, points, oneIn, func(t *testing.T, strike nodetest.Strike) {
		l := newLab(t)
		before := l.state()
		l.mustJoin()
		struck := l.Strike(strike)
		results, err := l.resetWith(resetAll(l))
		if !struck.Load() {
			t.Fatalf("the reset never came to this point: %v\n%s", err, table(results))
		}
		l.ComeBack()
		if results, err := l.resetWith(resetAll(l)); err != nil {
			t.Fatalf("the next reset: %v\n%s", err, table(results))
		}
		l.isAsBefore(before)
		again, err := l.resetWith(resetAll(l))
		nothing(t, again, err)
	})
}

// noToken makes sure that no bootstrap token is left, nor a file that had one.
func (l *lab) noToken() {
	l.t.Helper()
	secrets, err := l.cluster.Clientset().CoreV1().Secrets(metav1.NamespaceSystem).List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		if secret.Type == "bootstrap.kubernetes.io/token" {
			l.t.Errorf("left in the cluster: Secret %s", secret.Name)
		}
	}
	for _, path := range []string{layout.JoinConfiguration, layout.JoinConfiguration + ".swdt-new", `C:\etc\kubernetes\bootstrap-kubelet.conf`} {
		if l.get(path) != "" {
			l.t.Errorf("left on the machine: %s", path)
		}
	}
}
