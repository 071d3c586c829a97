// Package captureplan describes a capture of packets, both as your machine requests it and as the
// node reports it: the plan, the files on the node, the states and the outcome. Plans, states and
// outcomes travel as JSON, and the node keeps them in its journal.
package captureplan

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Program is the file name of pktmon. Windows finds the program on the machine's PATH.
const Program = "pktmon.exe"

// FilterName is the prefix of the names of swdt's filters. It distinguishes them from other programs' filters.
const FilterName = "swdt-"

// KeepFor is how long the packets of a capture stay on the node if no session fetches them. A session whose
// connection broke can fetch them within that time.
const KeepFor = time.Hour

// KeepAlive is the interval at which the caller of a capture sends a message, and MaxSilence is how
// long a node continues to capture without such a message. Only missing messages reveal a broken
// network connection.
const (
	KeepAlive  = 2 * time.Second
	MaxSilence = 5 * KeepAlive
)

// Plan describes one capture. Your machine makes the plan, since the command lines of pktmon differ
// between builds of Windows.
type Plan struct {
	ID     string `json:"id"`
	Holder string `json:"holder"` // the user and the machine that capture, for messages
	// Each element of Filters has the arguments of one `pktmon filter add`, except the filter's
	// name, which comes first on the command line.
	Filters [][]string `json:"filters,omitempty"`
	Start   []string   `json:"start"` // the arguments of pktmon that begin the capture
	// Live means that pktmon itself prints the packets until its process is ended. If Live is
	// false, the pktmon process ends at once, and pktmon's driver writes the packets to the log
	// file.
	Live bool `json:"live,omitempty"`
	// Blind means that the node's pktmon cannot report whether it captures.
	Blind bool `json:"blind,omitempty"`
	// Round, if it is not 0, is the time after which a log is closed and the next one begins, so that the closed
	// log can be fetched while the capture continues: see RoundFile.
	Round time.Duration `json:"round,omitempty"`
	// For is how long to capture; 0: until the session ends the capture.
	For time.Duration `json:"for,omitempty"`
	// MaxText limits the output of a live capture, in bytes.
	MaxText int64 `json:"maxText,omitempty"`
	// Force means that captures of other programs are ended and their filters removed. Without
	// Force, the node refuses this capture if another program captures or has filters.
	Force bool `json:"force,omitempty"`
	// Fetch means that nothing is captured: the session fetches the files that this capture left on
	// the node. Meanwhile no other capture and no guardian removes these files.
	Fetch bool `json:"fetch,omitempty"`
}

// LogFile returns the path of a capture's packets.
func LogFile(id string) string { return layout.Captures + `\` + id + ".etl" }

// RoundFile returns the path of the packets of a round; the first round is 1. For each round,
// StartOf puts this path in the place of LogFile's path.
func RoundFile(id string, round int) string {
	return layout.Captures + `\` + id + "." + strconv.Itoa(round) + ".etl"
}

// StartOf returns the arguments of pktmon that begin a round. If the plan has no rounds, it returns
// p.Start.
func (p Plan) StartOf(round int) []string {
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

// TextFile returns the path of the file that holds pktmon's output. In a live capture, this output
// is the packets as text.
func TextFile(id string) string { return layout.Captures + `\` + id + ".txt" }

// State is a stage of a capture.
type State string

const (
	Prepared  State = "prepared"
	Filtering State = "filtering"
	Starting  State = "starting"
	Capturing State = "capturing"
	Stopping  State = "stopping"
	Done      State = "done"
)

// Result is how a capture ended.
type Result string

const (
	Captured Result = "captured"
	Refused  Result = "refused" // another program captures or has filters
	Failed   Result = "failed"  // a pktmon command or another step of the guardian failed
)

// Outcome describes the end of a capture.
type Outcome struct {
	Result Result `json:"result"`
	// Reason is the reason why the capture ended, or why it did not begin.
	Reason string `json:"reason,omitempty"`
	// Running is the output of `pktmon status` about another program's capture, and Filters are the lines of `pktmon
	// filter list` that are not swdt's.
	Running string   `json:"running,omitempty"`
	Filters []string `json:"filters,omitempty"`
	// Kept is a message about filters of swdt that remain in pktmon after the capture; empty: none
	// remain.
	Kept string `json:"kept,omitempty"`
}

// Event is one step of a capture.
type Event struct {
	State   State    `json:"state"`
	Message string   `json:"message,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"` // with Done
	Rounds
}

// Rounds are the rounds of a capture whose logs are closed.
type Rounds struct {
	Closed int `json:"closed,omitempty"`
	// Until is the node's time just before pktmon was stopped for the last closed round. Every packet of the next
	// round is later.
	Until time.Time `json:"until,omitzero"`
	// Missed is the total time that pktmon was stopped between rounds.
	Missed time.Duration `json:"missed,omitempty"`
}

// ResultFile returns the path of a copy of a capture's journal. The copy is made when the next
// capture replaces the journal while the session of this capture still fetches packets, since this
// session may not have read the outcome yet.
func ResultFile(id string) string { return layout.Captures + `\` + id + ".json" }

// CommandError reports that pktmon ended with an exit code other than 0.
type CommandError struct {
	Args   []string
	Code   int
	Output string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("pktmon %s ended with exit code %d: %s", strings.Join(e.Args, " "), e.Code,
		strings.TrimSpace(e.Output))
}

// Validate returns an error if the plan cannot be carried out.
func (p Plan) Validate() error {
	allowed := func(r rune) bool { return r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' }
	if p.ID == "" || len(p.ID) > 40 || strings.TrimFunc(p.ID, allowed) != "" || path.Base(p.ID) != p.ID ||
		ResultFile(p.ID) == layout.CaptureJournal {
		return fmt.Errorf("%q is not the ID of a capture", p.ID)
	}
	if len(p.Start) == 0 {
		return errors.New("the capture's plan has no arguments with which pktmon starts the capture")
	}
	if p.Round < 0 || p.Round > 0 && (p.Live || !slices.Contains(p.Start, LogFile(p.ID))) {
		return errors.New("the capture's plan has rounds but no log for them")
	}
	return nil
}
