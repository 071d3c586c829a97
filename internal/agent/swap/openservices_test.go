package swap_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// services.msc is open on the node: it has a handle to each guardian that is registered while it looks. A deleted
// service lives until the last handle to it is closed.
func TestPushesWhileServicesMscIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		var releases []func()
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpServiceCreate && op.Phase == simulated.After {
				release, err := n.HoldService(op.Target)
				if err != nil {
					t.Errorf("open %s: %v", op.Target, err)
				}
				releases = append(releases, release)
			}
			return simulated.Continue()
		})
		for _, version := range []string{"v1.30.0", "v1.31.0", "v1.32.0"} {
			begun := time.Now()
			outcome, _ := n.push(t, n.stageKubelet(t, version, ""))
			if outcome.Result != swap.Committed {
				t.Fatalf("%s: %+v", version, outcome)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("%s: the push took %v", version, took)
			}
		}
		n.OnOperation(nil)
		for _, release := range releases {
			release()
		}
		if outcome, _ := n.push(t, n.stageKubelet(t, "v1.33.0", "")); outcome.Result != swap.Committed {
			t.Fatalf("after services.msc: %+v", outcome)
		}
		for _, s := range n.services(t) {
			if strings.HasPrefix(s, layout.GuardianService) {
				t.Errorf("left behind: service %s", s)
			}
		}
	})
}

func (n *node) services(t *testing.T) (names []string) {
	t.Helper()
	list, err := n.Process("look").Services.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}
