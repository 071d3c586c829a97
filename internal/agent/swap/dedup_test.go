package swap_test

import (
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Data Deduplication has made a reparse point of the previous binary. A symbolic link in its place is refused.
func TestRollbackToADeduplicatedBinary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		first := n.read(t, containerdExe)
		n.push(t, n.stageContainerd(t, "1.6.27", ""))
		previous := layout.Previous(containerdExe)
		back := swap.Component{
			Name: "containerd", Destination: containerdExe, Service: "containerd",
			Staged: previous, SHA256: n.hashAt(t, previous), PreviousSHA256: n.hashAt(t, containerdExe),
		}
		const tagSymlink = 0xA000000C
		if err := n.Reparse(previous, tagSymlink); err != nil {
			t.Fatal(err)
		}
		m, _ := n.session()
		if _, err := swap.Begin(t.Context(), m, swap.Plan{Components: []swap.Component{back}}); err == nil {
			t.Error("a link is accepted as the previous binary")
		}
		if err := n.Reparse(previous, simulated.TagDedup); err != nil {
			t.Fatal(err)
		}

		outcome, _ := n.push(t, back)

		if outcome.Result != swap.Committed {
			t.Fatalf("outcome: %+v", outcome)
		}
		equalBytes(t, "containerd", n.read(t, containerdExe), first)
	})
}
