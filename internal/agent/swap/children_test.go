package swap_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

func (n *node) runs(t *testing.T, pid uint32) bool {
	t.Helper()
	processes, err := n.Process("look").Processes.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		if p.PID == pid {
			return true
		}
	}
	return false
}

// A shim whose parent has ended has a parent's PID that another process can have by now, such as a new containerd
// (Win32_Process: "ParentProcessId … may incorrectly refer to a process that reuses a process identifier"). Pods die
// with their shim.
func TestAShimWhoseParentsPIDIsTheServicesIsNotKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newShimNode(t)
		pod := n.AddProcess(simulated.ProcessSpec{Image: shimExe, ParentPID: n.service(t, "containerd").PID,
			Started: time.Now().Add(-time.Hour)})

		outcome, _ := n.push(t, n.stageShim(t, shim(1)), n.stageContainerd(t, "1.6.27", ""))

		if outcome.Result != swap.Committed {
			t.Errorf("outcome: %+v", outcome)
		}
		if !n.runs(t, pod) {
			t.Error("the shim of a pod was killed")
		}
	})
}

// A kubelet that a wrapper starts through a junction has another path than the destination.
func TestAChildThatRunsTheDestinationThroughALinkIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		if err := n.Spawn("admin").Junction(`C:\bin`, `C:\k`); err != nil {
			t.Fatal(err)
		}
		child := n.AddProcess(simulated.ProcessSpec{Image: `C:\bin\kubelet.exe`, ParentPID: n.service(t, "kubelet").PID})

		outcome, _ := n.push(t, n.stageKubelet(t, "v1.30.0", ""))

		if outcome.Result != swap.Committed {
			t.Errorf("outcome: %+v", outcome)
		}
		if n.runs(t, child) {
			t.Error("the old kubelet still runs behind its wrapper")
		}
	})
}

// An nssm that hangs is killed, and its kubelet goes on: it is in no job of nssm.
func TestTheProgramOfAKilledWrapperIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nssm = `C:\k\nssm.exe`
		n := newNode(t)
		n.place(t, nssm, binary("nssm", "v2.24.0", "hang-on-stop"))
		n.register(t, nssm, map[string]string{"Application": kubeletExe}, true)

		outcome, _ := n.push(t, n.stageKubelet(t, "v1.30.0", ""))

		if outcome.Result != swap.Committed {
			t.Errorf("outcome: %+v", outcome)
		}
		kubelets := 0
		processes, err := n.Process("look").Processes.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range processes {
			if strings.HasPrefix(p.Name, "kubelet") {
				kubelets++
			}
		}
		if kubelets != 1 {
			t.Errorf("%d processes of kubelet run: %+v", kubelets, processes)
		}
	})
}
