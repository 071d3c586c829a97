package up

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// ReadyTime is the time that Up needed until a node was Ready.
type ReadyTime struct {
	Node string `json:"node"`
	// Seconds is the time from the beginning of the command until the node's join had ended.
	Seconds float64 `json:"seconds"`
	// Stages are the stages that the node had to wait for, in their order. Stages that ran meanwhile and
	// ended earlier are not among them.
	Stages []StageTime `json:"stages"`
}

// StageTime is the duration of a stage.
type StageTime struct {
	Stage   string  `json:"stage"`
	Node    string  `json:"node"` // empty: the cluster
	Seconds float64 `json:"seconds"`
}

// readyTimes returns the times of the nodes whose joins have succeeded.
func readyTimes(all []*stage) []ReadyTime {
	times := []ReadyTime{}
	for _, s := range all {
		if s.kind != Join || !s.succeeded() {
			continue
		}
		ready := ReadyTime{Node: s.node, Seconds: s.end()}
		for at := s; at != nil; at = at.last() {
			ready.Stages = append(ready.Stages, StageTime{at.kind, at.node, at.result.Seconds})
		}
		slices.Reverse(ready.Stages)
		times = append(times, ready)
	}
	return times
}

func (s *stage) succeeded() bool {
	return slices.Contains([]string{fleet.Changed, fleet.Unchanged}, s.result.Result)
}

// end returns the seconds from the beginning of the command to the end of the stage.
func (s *stage) end() float64 { return s.result.Began + s.result.Seconds }

// last returns the stage that s needs and that ended last; nil if s needs none.
func (s *stage) last() (last *stage) {
	for _, needed := range s.needs {
		if needed != nil && (last == nil || needed.end() > last.end()) {
			last = needed
		}
	}
	return last
}

// String returns the time for people, such as "win-1 Ready after 48.2s: cluster 30.1s, join 18.1s".
func (t ReadyTime) String() string {
	var parts []string
	for _, s := range t.Stages {
		parts = append(parts, s.Stage+" "+seconds(s.Seconds))
	}
	return fmt.Sprintf("%s Ready after %s: %s", t.Node, seconds(t.Seconds), strings.Join(parts, ", "))
}

func seconds(s float64) string { return ui.Seconds(time.Duration(s * float64(time.Second))) }
