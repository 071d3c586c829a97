package hang

import (
	"fmt"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/goroutines"
)

// A dump of a stranger may have thousands of groups: the work grows with their number, not with its square.
func TestTheWorkForADumpIsLinear(t *testing.T) {
	const groups = 2000
	p := &Process{Kind: Containerd}
	for i := range groups {
		p.Groups = append(p.Groups, goroutines.Group{State: "select", Count: 1, IDs: []uint64{uint64(i)},
			Frames: []string{fmt.Sprint("f", i), "ttrpc.(*channel).send", "ttrpc.(*Client).createStream"}})
	}
	looks := 0
	known := defectsBy(func(g goroutines.Group) bool {
		looks++
		return waitsBehindSend(g)
	})
	n := Node{Processes: []Process{*p}}
	for _, g := range p.Groups {
		if found := n.knownFor(known, p, Wait{}, g); len(found) != 1 || found[0].ID != "containerd/ttrpc#174" {
			t.Fatalf("%+v", found)
		}
	}
	if looks > 3*groups {
		t.Errorf("%d groups were looked at %d times", groups, looks)
	}
}

// Two dumps with thousands of waits are compared in one look at the goroutines of each process.
func TestTheWorkForAComparisonIsLinear(t *testing.T) {
	const waits = 2000
	p, n := Process{Kind: Containerd}, Node{}
	for i := range waits {
		function := fmt.Sprint("f", i)
		p.Groups = append(p.Groups, goroutines.Group{State: "select", Count: 1, IDs: []uint64{uint64(i)}, Frames: []string{function}})
		n.Waits = append(n.Waits, Wait{Process: Containerd, Operation: function, Function: function})
	}
	n.Processes = []Process{p}
	looks := 0
	isSame := n.sameIn(n, func(earlier, later Process) map[string]bool {
		looks++
		return stuckFunctions(earlier, later)
	})
	for _, w := range n.Waits {
		if !isSame(w) {
			t.Fatalf("%+v moved", w)
		}
	}
	if looks != 1 {
		t.Errorf("the process was looked at %d times", looks)
	}
	if d := n.compare(n); len(d.Stuck) != waits || len(d.Moved)+len(d.New) != 0 {
		t.Errorf("%d did not move, %d moved, %d are new", len(d.Stuck), len(d.Moved), len(d.New))
	}
}
