package swap_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// startOther starts a service that hangs in its handler from the next control on.
func (n *node) startOther(t *testing.T) platform.Services {
	t.Helper()
	const other = `C:\other\other.exe`
	n.place(t, other, binary("other", "v1.0.0", string(simulated.HangInHandler)))
	services := n.Process("administrator").Services
	if err := services.Create(t.Context(), platform.ServiceConfig{Name: "other", CommandLine: other}); err != nil {
		t.Fatal(err)
	}
	if err := services.Start(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other service runs", func() bool { return n.service(t, "other").State == platform.Running })
	return services
}

// While the SCM waits for the handler of another service, it delivers no control. kubelet is not killed for that.
func TestAPushWhileAnotherServiceHangsInItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		services := n.startOther(t)
		n.ForgetOperations()
		go func() { _ = services.Stop(t.Context(), "other") }() // lasts 30 s
		synctest.Wait()
		begun := time.Now()

		outcome, _ := n.push(t, n.stageKubelet(t, "v1.31.0", ""))

		if outcome.Result != swap.Committed {
			t.Errorf("the push ended with %+v", outcome)
		}
		if waited := time.Since(begun); waited < 25*time.Second {
			t.Errorf("the push took %v, although the SCM was busy for 30s", waited)
		}
		if killed(n.Machine) {
			t.Error("a service was killed that the SCM did not ask to stop")
		}
	})
}

// While the SCM waits for the handler of another service, it starts no service either. The new kubelet is not undone for
// that (StartService, remarks).
func TestAPushWhoseStartMeetsAnotherServiceInItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		services := n.startOther(t)
		plan := n.stageKubelet(t, "v1.31.0", "")
		var once sync.Once
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Phase == simulated.Before && op.Kind == simulated.OpServiceStart && op.Target == "kubelet" {
				once.Do(func() {
					go func() { _ = services.Stop(t.Context(), "other") }() // lasts 30 s
					synctest.Wait()
				})
			}
			return simulated.Continue()
		})

		outcome, _ := n.push(t, plan)

		if outcome.Result != swap.Committed {
			t.Errorf("the push ended with %+v", outcome)
		}
	})
}

// A service that hangs in its own handler is killed, and the push goes on.
func TestAPushOfAServiceThatHangsInItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.push(t, n.stageKubelet(t, "v1.30.0", string(simulated.HangInHandler)))
		n.ForgetOperations()

		outcome, _ := n.push(t, n.stageKubelet(t, "v1.31.0", ""))

		if outcome.Result != swap.Committed || !killed(n.Machine) {
			t.Errorf("the push ended with %+v, a process was killed: %v", outcome, killed(n.Machine))
		}
	})
}

// killed reports whether a process was killed.
func killed(m *simulated.Machine) bool {
	return slices.ContainsFunc(m.Operations(), func(op simulated.Operation) bool {
		return op.Kind == simulated.OpProcessKill
	})
}
