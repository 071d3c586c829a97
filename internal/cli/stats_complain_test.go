package cli

import (
	"slices"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/stats"
)

// Several nodes and callers are watched by one: what fails is named, and said once.
func TestAFailingSourceIsToldOfOnce(t *testing.T) {
	var said []string
	w := &statsWatch{say: func(text string) { said = append(said, text) }, failing: map[string]bool{}}
	for range 3 {
		w.complain(stats.Reading{Node: "one", Source: stats.CRI})
		w.complain(stats.Reading{Node: "two", Source: stats.CRI, Err: "gone"})
		w.complain(stats.Reading{Node: "two", Source: stats.CRI, Caller: 1})
	}
	w.complain(stats.Reading{Node: "two", Source: stats.CRI})
	w.complain(stats.Reading{Node: "two", Source: stats.CRI, Err: "again"})
	want := []string{"warning: two: cri does not answer: gone", "warning: two: cri does not answer: again"}
	if !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
}

// A pod without a limit may use what is kept for the system, too.
func TestCoresOfANode(t *testing.T) {
	for allocatable, want := range map[int64]float64{0: 0, 1500: 2, 3920: 4, 4000: 4} {
		if got := nodeCores(cluster.Node{Allocatable: cluster.Resources{MilliCPU: allocatable}}); got != want {
			t.Errorf("of %d thousandths: %v", allocatable, got)
		}
	}
}
