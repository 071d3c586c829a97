package join_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/host/simulated"
	"github.com/swdt-dev/swdt/internal/layout"
)

// point names one change that a join or a reset asks of the machine, the same in
// every run of it.
type point struct {
	who        string // session or kubeadm.exe
	kind       simulated.Kind
	target     string // without what is random in it
	occurrence int
}

func (p point) String() string {
	return fmt.Sprintf("%s %s %s #%d", p.who, p.kind, strings.ReplaceAll(p.target, `\`, "/"), p.occurrence)
}

// counter gives the machine's operations their points. What services and the
// guardian do is not among them: package swap interrupts the guardian.
type counter struct {
	mu     sync.Mutex
	random *regexp.Regexp
	seen   map[point]int
}

func newCounter() *counter {
	return &counter{random: regexp.MustCompile(`\d{8}-\d{6}-[0-9a-f]{8}|\d{4}(-\d{2}){5}`), seen: map[point]int{}}
}

func (c *counter) point(op simulated.Operation) (point, bool) {
	p := point{who: op.Process, kind: op.Kind, target: c.random.ReplaceAllString(op.Target, "ID")}
	if strings.HasPrefix(op.Process, "session ") {
		p.who = "session"
	} else if op.Process != "kubeadm.exe" {
		return p, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if op.Phase == simulated.Before {
		c.seen[p]++
	}
	p.occurrence = c.seen[p]
	return p, op.Seq > 0
}

// blow is what happens at a point.
type blow struct {
	name  string
	phase simulated.Phase
	cut   bool // the connection breaks, as it does when the agent dies
	deals func(op simulated.Operation) simulated.Verdict
}

func blows() []blow {
	killed := func(op simulated.Operation) simulated.Verdict {
		return simulated.Verdict{KillCaller: true, Kill: []string{op.Process, "kubeadm.exe"}}
	}
	power := func(simulated.Operation) simulated.Verdict { return simulated.PowerCut() }
	fails := func(simulated.Operation) simulated.Verdict { return simulated.Fail(host.ErrPermission) }
	return []blow{
		{"the agent is killed before", simulated.Before, true, killed},
		{"the agent is killed after", simulated.After, true, killed},
		{"the power is cut after", simulated.After, true, power},
		{"it fails", simulated.Before, false, fails},
	}
}

// strike deals the blow when the machine comes to the point.
func (l *lab) strike(p point, b blow) *atomic.Bool {
	var struck atomic.Bool
	count := newCounter()
	l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		at, ours := count.point(op)
		if !ours || at != p || op.Phase != b.phase || !struck.CompareAndSwap(false, true) {
			return simulated.Continue()
		}
		if b.cut {
			l.Cut()
		}
		return b.deals(op)
	})
	return &struck
}

// comeBack connects as the next swdt does.
func (l *lab) comeBack() {
	l.t.Helper()
	l.Machine.OnOperation(nil)
	if err := l.Reconnect(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	l.Settle()
}

// points are the changes of an undisturbed run of f.
func (l *lab) points(f func()) []point {
	var all []point
	var mu sync.Mutex
	count := newCounter()
	l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if p, ours := count.point(op); ours && op.Phase == simulated.Before {
			mu.Lock()
			all = append(all, p)
			mu.Unlock()
		}
		return simulated.Continue()
	})
	f()
	l.Machine.OnOperation(nil)
	return all
}

// everyPoint in the environment has every point struck, which takes a quarter of
// an hour. Otherwise it is some, in a short run few, spread over all of them.
const everyPoint = "SWDT_EVERY_POINT"

func sampled() int {
	switch {
	case os.Getenv(everyPoint) != "":
		return 1
	case testing.Short():
		return 41
	}
	return 11 // like 41 prime, so that each blow falls all over a run
}

// each runs f for every point and blow, or for some.
func each(t *testing.T, points []point, f func(t *testing.T, p point, b blow)) {
	all := blows()
	for i, p := range points {
		for j, b := range all {
			if (i*len(all)+j)%sampled() != 0 {
				continue
			}
			t.Run(p.String()+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				f(t, p, b)
			})
		}
	}
}

// TestAJoinThatIsInterruptedAnywhereIsFinishedByTheNext interrupts a join at
// each of its changes and runs it again.
func TestAJoinThatIsInterruptedAnywhereIsFinishedByTheNext(t *testing.T) {
	l := newLab(t)
	points := l.points(func() { l.mustJoin() })
	if len(points) < 100 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	t.Logf("%d points", len(points))
	each(t, points, func(t *testing.T, p point, b blow) {
		l := newLab(t)
		struck := l.strike(p, b)
		results, err := l.join()
		if !struck.Load() {
			t.Fatalf("the join never came to this point: %v\n%s", err, table(results))
		}
		l.comeBack()
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
	points := l.points(func() {
		if results, err := l.resetWith(resetAll(l)); err != nil {
			t.Fatalf("%v\n%s", err, table(results))
		}
	})
	if len(points) < 40 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	t.Logf("%d points", len(points))
	each(t, points, func(t *testing.T, p point, b blow) {
		l := newLab(t)
		before := l.state()
		l.mustJoin()
		struck := l.strike(p, b)
		results, err := l.resetWith(resetAll(l))
		if !struck.Load() {
			t.Fatalf("the reset never came to this point: %v\n%s", err, table(results))
		}
		l.comeBack()
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
