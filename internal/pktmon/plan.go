package pktmon

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// Program is looked up on the machine's PATH.
const Program = "pktmon.exe"

// FilterName begins the names of our filters: by it they are told from others'.
const FilterName = "swdt-"

// Plan is one capture, as the other end of the wire made it: the command lines
// are pktmon's, which differ between builds of Windows.
type Plan struct {
	ID     string `json:"id"`
	Holder string `json:"holder"` // who captures, for people
	// Filters are the arguments of each `pktmon filter add`, after the name.
	Filters [][]string `json:"filters,omitempty"`
	Start   []string   `json:"start"` // the arguments of pktmon that begin the capture
	// Live: pktmon prints packets until it is ended; else it returns at once and
	// the driver writes to the log file.
	Live bool `json:"live,omitempty"`
	// Blind: this pktmon cannot be asked whether it captures.
	Blind bool `json:"blind,omitempty"`
	// Round, where it is not 0, is after how long a log is closed and the next one
	// begun, so that it can be fetched while the capture goes on: see RoundFile.
	Round time.Duration `json:"round,omitempty"`
	// For is how long to capture; 0: as long as the session holds it.
	For time.Duration `json:"for,omitempty"`
	// MaxText bounds what a live capture may print, bytes.
	MaxText int64 `json:"maxText,omitempty"`
	// Force ends what somebody else captures.
	Force bool `json:"force,omitempty"`
	// Fetch captures nothing: the session fetches what this capture left on the node,
	// and holds it meanwhile.
	Fetch bool `json:"fetch,omitempty"`
}

// LogFile is where a capture's packets are.
func LogFile(id string) string { return layout.Captures + `\` + id + ".etl" }

// RoundFile is where the packets of a round are, the first being 1. It takes the
// place of LogFile in Plan.Start.
func RoundFile(id string, round int) string {
	return layout.Captures + `\` + id + "." + strconv.Itoa(round) + ".etl"
}

// startOf are the arguments of pktmon that begin a round.
func (p Plan) startOf(round int) []string {
	args := slices.Clone(p.Start)
	if p.Round > 0 {
		for i, arg := range args {
			if arg == LogFile(p.ID) {
				args[i] = RoundFile(p.ID, round)
			}
		}
	}
	return args
}

// TextFile is what pktmon printed: of a live capture, its packets.
func TextFile(id string) string { return layout.Captures + `\` + id + ".txt" }

// State is how far a capture is.
type State string

const (
	Prepared  State = "prepared"
	Filtering State = "filtering"
	Starting  State = "starting"
	Capturing State = "capturing"
	Stopping  State = "stopping"
	Done      State = "done"
)

// Result is what came of a capture.
type Result string

const (
	Captured Result = "captured"
	Refused  Result = "refused" // somebody else captures
	Failed   Result = "failed"  // pktmon did not do what it was told
)

// Outcome is how a capture ended.
type Outcome struct {
	Result Result `json:"result"`
	// Reason is why it ended, or why it did not begin.
	Reason string `json:"reason,omitempty"`
	// Running is what `pktmon status` said of somebody else's capture, and
	// Filters are somebody else's lines of `pktmon filter list`.
	Running string   `json:"running,omitempty"`
	Filters []string `json:"filters,omitempty"`
	// Kept says which of our filters are still there, and why.
	Kept string `json:"kept,omitempty"`
}

// Event is one step of a capture.
type Event struct {
	State   State    `json:"state"`
	Message string   `json:"message,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"` // with Done
	Rounds
}

// Rounds are those of a capture whose logs are closed.
type Rounds struct {
	Closed int `json:"closed,omitempty"`
	// Until is when the last of them was about to end, by the node's clock: every
	// packet of the next is younger.
	Until time.Time `json:"until,omitzero"`
	// Missed is how long, in all, pktmon stood between a round and the next.
	Missed time.Duration `json:"missed,omitempty"`
}

// ErrBusy: another swdt captures on this node.
var ErrBusy = errors.New("another swdt captures on this node")

// Machine is what a capture runs on.
type Machine struct {
	Host       *host.Host
	Executable string // the agent's own path
}

func (p Plan) validate() error {
	allowed := func(r rune) bool { return r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' }
	if p.ID == "" || len(p.ID) > 40 || strings.TrimFunc(p.ID, allowed) != "" || path.Base(p.ID) != p.ID {
		return fmt.Errorf("%q is not the name of a capture", p.ID)
	}
	if len(p.Start) == 0 {
		return errors.New("the capture's plan does not say how to begin")
	}
	if p.Round < 0 || p.Round > 0 && (p.Live || !slices.Contains(p.Start, LogFile(p.ID))) {
		return errors.New("the capture's plan has rounds, and no log for them")
	}
	return nil
}
