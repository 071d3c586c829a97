package swap_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// TestABlockedBinaryIsRolledBackWithARemedy lets an antivirus or a policy refuse the new kubelet when the SCM starts
// it, with each code of Windows.
func TestABlockedBinaryIsRolledBackWithARemedy(t *testing.T) {
	for _, refusal := range []simulated.Refusal{simulated.VirusInfected, simulated.VirusDeleted,
		simulated.DisabledByPolicy, simulated.IntegrityPolicy} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t)
			old := n.read(t, kubeletExe)
			kubelet := n.stageKubelet(t, "v1.30.0", "")
			n.OnOperation(func(o simulated.Operation) simulated.Verdict {
				if o.Kind == simulated.OpServiceStart && o.Target == "kubelet" && o.Phase == simulated.Before {
					n.Block(func(i *simulated.Image) bool { return i.SHA256() == kubelet.SHA256 }, refusal)
				}
				return simulated.Continue()
			})

			outcome, _ := n.push(t, kubelet)

			n.OnOperation(nil)
			switch {
			case outcome.Result != swap.RolledBack || outcome.FailedComponent != "kubelet":
				t.Fatalf("%d: outcome: %+v", refusal, outcome)
			case !strings.Contains(outcome.Message, fault.BlockedRemedy(kubeletExe)):
				t.Errorf("%d: the message lacks the remedy: %s", refusal, outcome.Message)
			}
			equalBytes(t, "kubelet", n.read(t, kubeletExe), old)
			if s := n.service(t, "kubelet"); s.State != platform.Running {
				t.Errorf("%d: kubelet is %s", refusal, s.State)
			}
		})
	}
}

// TestAnInfectedStagedFileIsRefusedWithARemedy lets an antivirus find the staged file after its transfer.
func TestAnInfectedStagedFileIsRefusedWithARemedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		kubelet := n.stageKubelet(t, "v1.30.0", "")
		n.Block(func(i *simulated.Image) bool { return i.SHA256() == kubelet.SHA256 }, simulated.VirusInfected)
		m, _ := n.session()

		_, err := swap.Begin(t.Context(), m, swap.Plan{Components: []swap.Component{kubelet}})

		switch {
		case !errors.Is(err, fault.ErrBlocked):
			t.Fatalf("the error is %v, want %v", err, fault.ErrBlocked)
		case !strings.Contains(err.Error(), fault.BlockedRemedy(kubeletExe)):
			t.Errorf("the error lacks the remedy: %v", err)
		}
	})
}

// TestABlockedGuardianIsRefusedWithARemedy lets a policy refuse the agent as a service, though it runs in a session.
func TestABlockedGuardianIsRefusedWithARemedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		kubelet := n.stageKubelet(t, "v1.30.0", "")
		n.Block(func(i *simulated.Image) bool { return i.Path == n.agent }, simulated.IntegrityPolicy)
		m, _ := n.session()

		_, err := swap.Begin(t.Context(), m, swap.Plan{Components: []swap.Component{kubelet}})

		switch {
		case !errors.Is(err, fault.ErrBlocked):
			t.Fatalf("the error is %v, want %v", err, fault.ErrBlocked)
		case !strings.Contains(err.Error(), fault.BlockedRemedy(n.agent)):
			t.Errorf("the error lacks the remedy: %v", err)
		}
	})
}
