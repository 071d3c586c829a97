package push

import (
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Part is a part of a push or a rollback: which work took how long. Parts do not overlap.
type Part struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Names of parts, in their usual order. A transaction that stops several services may stop, swap and start more than
// once; such a part is the sum.
const (
	partConnect = "connect" // reach the node
	partAgent   = "agent"   // start the agent there
	partInspect = "inspect" // look at the node, and read the new binaries at the same time
	partStage   = "stage"   // send the binaries and verify them
	partDrain   = "drain"
	partBegin   = "begin" // check the files again, write the journal, start the guardian
	partWait    = "wait"  // for a program that holds a file
	partStop    = "stop"
	partSwap    = "swap"
	partStart   = "start"
	partCheck   = "check" // services settle and are healthy
	partUndo    = "undo"
	partEnd     = "end" // keep the previous binaries, read the outcome, remove the journal
	partReady   = "ready"
)

// partOf returns the part that begins with a state of the transaction; "": it goes on with the present one.
func partOf(state agentv1.SwapState) string {
	switch state {
	case agentv1.SwapState_SWAP_STATE_WAITING:
		return partWait
	case agentv1.SwapState_SWAP_STATE_STOPPING:
		return partStop
	case agentv1.SwapState_SWAP_STATE_SWAPPING:
		return partSwap
	case agentv1.SwapState_SWAP_STATE_STARTING:
		return partStart
	case agentv1.SwapState_SWAP_STATE_CHECKING:
		return partCheck
	case agentv1.SwapState_SWAP_STATE_ROLLING_BACK:
		return partUndo
	case agentv1.SwapState_SWAP_STATE_COMMITTING, agentv1.SwapState_SWAP_STATE_DONE:
		return partEnd
	}
	return ""
}

// parts measures the parts of a work.
type parts struct {
	all  []Part
	name string // of the present part; "": none
	from time.Time
}

// begin ends the present part and begins another.
func (p *parts) begin(name string) {
	if name == "" || name == p.name {
		return
	}
	p.end()
	p.name, p.from = name, time.Now()
}

// end ends the present part.
func (p *parts) end() {
	if p.name != "" {
		p.add(p.name, time.Since(p.from))
	}
	p.name = ""
}

func (p *parts) add(name string, took time.Duration) {
	i := slices.IndexFunc(p.all, func(part Part) bool { return part.Name == name })
	if i < 0 {
		i = len(p.all)
		p.all = append(p.all, Part{Name: name})
	}
	p.all[i].Seconds += took.Seconds()
}

// String returns the parts for a reader of -v.
func (p *parts) String() string {
	var texts []string
	for _, part := range p.all {
		took := time.Duration(part.Seconds * float64(time.Second))
		texts = append(texts, part.Name+" "+ui.Seconds(took))
	}
	return strings.Join(texts, ", ")
}
