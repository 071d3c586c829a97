package swap_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func TestABadBinaryIsRolledBack(t *testing.T) {
	for _, fault := range []string{"crash-at-start", "exit-after=300ms", "unhealthy"} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				oldContainerd, oldKubelet := n.read(t, containerdExe), n.read(t, kubeletExe)

				outcome, _ := n.push(t, n.stageContainerd(t, "1.6.27", ""), n.stageKubelet(t, "v1.30.0", fault))

				if outcome.Result != swap.RolledBack || outcome.FailedComponent != "kubelet" {
					t.Fatalf("outcome: %+v", outcome)
				}
				verbose("%s: %s\n%s", fault, outcome.Message, strings.Join(outcome.Components[1].LogLines, "\n"))
				switch c := outcome.Components[1]; {
				case c.Action != "failed":
					t.Errorf("kubelet, with the log lines of the new binary only: c.Action is %q, want %q",
						c.Action, "failed")
				case len(c.LogLines) == 0:
					t.Error("kubelet, with the log lines of the new binary only: c.LogLines is empty")
				case strings.Contains(strings.Join(c.LogLines, "\n"), "v1.28.4"):
					t.Errorf("kubelet, with the log lines of the new binary only: strings.Join(c.LogLines, \"\\n\") "+
						"contains %q:\n%s", "v1.28.4", strings.Join(c.LogLines, "\n"))
				}
				if c := outcome.Components[0]; c.Action != "rolledBack" {
					t.Errorf("containerd: %+v", c)
				}
				equalBytes(t, "containerd", n.read(t, containerdExe), oldContainerd)
				equalBytes(t, "kubelet", n.read(t, kubeletExe), oldKubelet)
				for _, name := range []string{"containerd", "kubelet", "kube-proxy"} {
					if s := n.service(t, name); s.State != platform.Running {
						t.Errorf("%s is %s", name, s.State)
					}
				}
				if left := n.leftovers(t); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		})
	}
}

func TestRollbackByHandAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		first := n.read(t, containerdExe)
		n.push(t, n.stageContainerd(t, "1.6.27", ""))
		second := n.read(t, containerdExe)

		for _, want := range [][]byte{first, second, first} {
			previous := layout.Previous(containerdExe)
			outcome, _ := n.push(t, swap.Component{
				Name: "containerd", Destination: containerdExe, Service: "containerd",
				Staged: previous, SHA256: n.hashAt(t, previous), PreviousSHA256: n.hashAt(t, containerdExe),
			})
			if outcome.Result != swap.Committed {
				t.Fatalf("outcome: %+v", outcome)
			}
			equalBytes(t, "containerd", n.read(t, containerdExe), want)
		}
	})
}

func TestAFailedRollbackByHandKeepsThePreviousBinary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.push(t, n.stageKubelet(t, "v1.30.0", ""))
		good, previous := n.read(t, kubeletExe), layout.Previous(kubeletExe)
		bad := binary("kubelet", "v1.28.0", "crash-at-start")
		n.place(t, previous, bad)

		outcome, _ := n.push(t, swap.Component{
			Name: "kubelet", Destination: kubeletExe, Service: "kubelet",
			Staged: previous, SHA256: hash(bad), PreviousSHA256: hash(good),
		})

		if outcome.Result != swap.RolledBack {
			t.Fatalf("outcome: %+v", outcome)
		}
		equalBytes(t, "kubelet", n.read(t, kubeletExe), good)
		equalBytes(t, "previous", n.read(t, previous), bad)
	})
}

func TestAHealthCheckThatFailedBeforeIsNotHeldAgainstTheNewBinary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		kubelet := n.stageKubelet(t, "v1.30.0", "")
		kubelet.Health.HTTPGet = "http://127.0.0.1:9/nobody-listens"

		outcome, _ := n.push(t, kubelet)

		if outcome.Result != swap.Committed || outcome.Components[0].Message == "" {
			t.Fatalf("outcome: %+v", outcome)
		}
	})
}

// The new kubelet crashes as soon as its check has begun, and the SCM has restarted it before the guardian looks
// again: only the number of the process shows the crash.
func TestACrashThatTheSCMHidesByARestartIsRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		if err := n.Process("setup").Services.Configure(t.Context(), platform.ServiceConfig{Name: "kubelet",
			Recovery: &platform.Recovery{Restarts: []time.Duration{time.Millisecond}, Reset: time.Hour}}); err != nil {
			t.Fatal(err)
		}
		crashes := 0
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if crashes == 0 && op.Kind == simulated.OpSync && op.Phase == simulated.After &&
				bytes.HasSuffix(n.read(t, op.Target), []byte(`"state":"checking","component":"kubelet"}`+"\n")) {
				crashed := n.service(t, "kubelet").PID
				crashes = n.Kill("kubelet")
				eventually(t, "the kubelet runs again", func() bool {
					s := n.service(t, "kubelet")
					return s.State == platform.Running && s.PID != crashed
				})
			}
			return simulated.Continue()
		})

		outcome, _ := n.push(t, n.stageKubelet(t, "v1.30.0", ""))

		if crashes != 1 || outcome.Result != swap.RolledBack || outcome.FailedComponent != "kubelet" {
			t.Errorf("after %d crashes, the outcome is %+v", crashes, outcome)
		}
	})
}

// An administrator deletes a service in the middle of a push. The undo restores everything else, and names the service.
func TestAnUndoWhoseServiceIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		oldContainerd, oldKubelet := n.read(t, containerdExe), n.read(t, kubeletExe)
		deleted := false
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if !deleted && op.Kind == simulated.OpRename && op.Target == kubeletExe && op.Phase == simulated.After {
				deleted = true
				if err := n.Process("admin").Services.Delete(t.Context(), "kubelet"); err != nil {
					t.Error(err)
				}
			}
			return simulated.Continue()
		})

		kubelet := n.stageKubelet(t, "v1.30.0", "")
		kubelet.CommandLine = `"C:\k\kubelet.exe" --v=6`
		outcome, _ := n.push(t, n.stageContainerd(t, "1.6.27", "crash-at-start"), kubelet)

		if !deleted || outcome.Result != swap.Failed || !strings.Contains(outcome.Message, "service kubelet") {
			t.Errorf("deleted: %v, outcome: %+v", deleted, outcome)
		}
		equalBytes(t, "containerd", n.read(t, containerdExe), oldContainerd)
		equalBytes(t, "kubelet", n.read(t, kubeletExe), oldKubelet)
		if s := n.service(t, "containerd"); s.State != platform.Running {
			t.Errorf("containerd is %s", s.State)
		}
	})
}
