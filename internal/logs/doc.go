// Package logs shows what a node's programs have logged and log now: several logs
// of several nodes in one order of time.
//
//   - sources.go: where each program's log lives; the table to extend
//   - find.go, configured.go, list.go: which files those are on a node
//   - pattern.go: a regular expression, and what of it the node can look for
//   - tail.go: one file as records, from the agent
//   - merge.go: records of many logs in one order, with bounded memory
//   - api.go: the same through the API server, where SSH is not to be had
package logs

import (
	"time"

	"github.com/swdt-dev/swdt/internal/events"
	"github.com/swdt-dev/swdt/internal/logline"
)

// Record is one line of one log.
type Record struct {
	Time   time.Time // zero: neither it nor a line before it says
	Node   string
	Source string // kubelet, pod/NS/NAME/CONTAINER, event:System, …
	File   string // its path on the node
	Level  logline.Level
	Stream string // stdout or stderr, of a container
	Text   string
	Event  *events.Event // of a source event:CHANNEL
	// Raw is whole lines as they stand in the file, in place of all but File and
	// what is above it: see Options.Verbatim.
	Raw []byte
}

// Options say which lines are wanted.
type Options struct {
	Sources []string  // none: those of the node's services that exist
	Since   time.Time // zero: from the beginning
	Until   time.Time // zero: to the end
	Tail    int       // the last so many lines of each log; negative: all
	Follow  bool
	Grep    *Pattern      // nil: every line
	Level   logline.Level // and worse; Unknown: every line

	EventIDs []int // of the channels among Sources; none: all
	// Verbatim lets lines through that nobody has looked at, where there is a
	// single log: the sink wants nothing but their text.
	Verbatim bool
}
