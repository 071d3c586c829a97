package swap_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
)

// A kill counts as a failure of the service. If the recovery actions restart Windows then, a push does not kill: the
// pods of the node would end in the middle of it.
func TestAServiceWhoseFailureRestartsWindowsIsNotKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.push(t, n.stageKubelet(t, "v1.30.0", "hang-on-stop"))
		err := n.Process("administrator").Services.Configure(t.Context(), platform.ServiceConfig{Name: "kubelet",
			Recovery: &platform.Recovery{Actions: []platform.RecoveryAction{{Kind: platform.RecoverByReboot}}}})
		if err != nil {
			t.Fatal(err)
		}
		boot, _ := n.Up()
		old := n.hashAt(t, kubeletExe)

		outcome, _ := n.push(t, n.stageKubelet(t, "v1.31.0", ""))

		if boot.Err() != nil {
			t.Fatal("the push restarted Windows")
		}
		if outcome.Result != swap.Failed || !strings.Contains(outcome.Message, "sc.exe failure kubelet") {
			t.Errorf("the outcome is %s %q, without a remedy", outcome.Result, outcome.Message)
		}
		if n.hashAt(t, kubeletExe) != old {
			t.Error("the old kubelet is not in place")
		}
	})
}
