package swap_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// serviceCalls lists the guardian's starts and stops.
func serviceCalls(n *node) (calls []string) {
	for _, op := range n.Operations() {
		if op.Service != layout.GuardianService {
			continue
		}
		switch op.Kind {
		case simulated.OpServiceStart:
			calls = append(calls, "start "+op.Target)
		case simulated.OpServiceStop:
			calls = append(calls, "stop "+op.Target)
		}
	}
	return calls
}

func TestStoppedServicesStayStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		setup := n.Process("setup")
		if err := setup.Services.Stop(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "kubelet stopped", func() bool { return n.service(t, "kubelet").PID == 0 })

		outcome, _ := n.push(t, n.stageContainerd(t, "1.6.27", ""), n.stageKubelet(t, "v1.30.0", ""))

		if outcome.Result != swap.Committed {
			t.Fatalf("outcome: %+v", outcome)
		}
		if s := n.service(t, "kubelet"); s.State != platform.Stopped {
			t.Errorf("kubelet is %s", s.State)
		}
		if s := n.service(t, "containerd"); s.State != platform.Running {
			t.Errorf("containerd is %s", s.State)
		}
		equalBytes(t, "kubelet", n.read(t, kubeletExe), binary("kubelet", "v1.30.0", ""))
	})
}

// The old kubelet ignores the stop, so that it is killed, and the SCM restarts it.
func TestServicesThatTheSCMRestartsAreStartedAgain(t *testing.T) {
	for delay := time.Duration(0); delay < 60*time.Millisecond; delay += 5 * time.Millisecond {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				n.push(t, n.stageKubelet(t, "v1.30.0", "hang-on-stop"))
				recovery := &platform.Recovery{Restarts: []time.Duration{delay}, Reset: time.Hour}
				if err := n.Process("setup").Services.Configure(t.Context(),
					platform.ServiceConfig{Name: "kubelet", Recovery: recovery}); err != nil {
					t.Fatal(err)
				}

				outcome, _ := n.push(t, n.stageKubelet(t, "v1.31.0", ""), n.stageContainerd(t, "1.6.27", ""))

				if outcome.Result != swap.Committed {
					t.Fatalf("outcome: %+v", outcome)
				}
				log := string(n.read(t, `C:\var\log\kubelet\kubelet.log`))
				_, last, _ := lastCut(log, `"starting" version="`)
				if !strings.HasPrefix(last, "v1.31.0") {
					t.Errorf("what runs is %.8s, after\n%s", last, log)
				}
			})
		})
	}
}

// lastCut is strings.Cut at the last separator.
func lastCut(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

func TestTheCommandLineChangesWithTheBinaryAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		commandLine := func() string {
			config, err := n.Process("look").Services.Config(t.Context(), "kubelet")
			if err != nil {
				t.Fatal(err)
			}
			return config.CommandLine
		}
		before := commandLine()
		wanted := `"C:\k\kubelet.exe" --v=6`

		broken := n.stageKubelet(t, "v1.30.0", "crash-at-start")
		broken.CommandLine = wanted
		if outcome, _ := n.push(t, broken); outcome.Result != swap.RolledBack || commandLine() != before {
			t.Fatalf("after a rollback: %q, %+v", commandLine(), outcome)
		}
		// Without a new binary, only the registration changes.
		outcome, _ := n.push(t, swap.Component{
			Name: "kubelet", Destination: kubeletExe, Service: "kubelet", CommandLine: wanted,
		})
		switch {
		case outcome.Result != swap.Committed:
			t.Fatalf("after a change: outcome.Result is %v, want %v", outcome.Result, swap.Committed)
		case outcome.Components[0].Action != "restarted":
			t.Fatalf("after a change: outcome.Components[0].Action is %q, want %q",
				outcome.Components[0].Action, "restarted")
		case commandLine() != wanted:
			t.Fatalf("after a change: commandLine() is %v, want %v", commandLine(), wanted)
		}
	})
}

// After the last stop, the SCM's recovery or another program starts the
// kubelet, and with it the containerd that it depends on: both from their old
// binaries.
func TestServicesStartedBeforeTheSwapAreStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		kubelet, containerd := n.stageKubelet(t, "v1.30.0", ""), n.stageContainerd(t, "1.6.28", "")
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpRename && op.Target == layout.Undo(kubeletExe) && op.Phase == simulated.Before {
				if err := n.Process("scm").Services.Start(context.Background(), "kubelet"); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond) // of the bubble's clock: the swap is later than the start
			}
			return simulated.Continue()
		})

		outcome, _ := n.push(t, kubelet, containerd)

		if outcome.Result != swap.Committed {
			t.Fatalf("outcome: %+v", outcome)
		}
		log := string(n.read(t, `C:\var\log\kubelet\kubelet.log`))
		if _, last, _ := lastCut(log, `"starting" version="`); !strings.HasPrefix(last, "v1.30.0") {
			t.Errorf("what runs is %.8s, after\n%s", last, log)
		}
	})
}

// A power cut can keep the renames and lose the new command line, which Windows writes to the disk at another time.
func TestALostCommandLineIsSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, "")
		old, err := r.Process("look").Services.Config(t.Context(), "kubelet")
		if err != nil {
			t.Fatal(err)
		}
		lost := false
		r.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if !lost && op.Kind == simulated.OpSync && op.Phase == simulated.After &&
				bytes.HasSuffix(r.read(t, op.Target), []byte(`"state":"swapped"}`+"\n")) {
				lost = true
				if err := r.Process("power cut").Services.Configure(t.Context(), platform.ServiceConfig{Name: "kubelet",
					CommandLine: old.CommandLine}); err != nil {
					t.Error(err)
				}
				return simulated.KillNamed(layout.GuardianService)
			}
			return simulated.Continue()
		})

		r.transact()

		if !lost || r.outcome.Result != swap.Committed {
			t.Errorf("lost: %v, outcome: %+v, %v", lost, r.outcome, r.err)
		}
		r.check(t, "after the loss") // compares the command line too
	})
}
