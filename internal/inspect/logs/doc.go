// Package logs reads and follows the logs of nodes' programs, and merges several logs of
// several nodes by time.
//
//   - sources.go: the places of each program's logs; the table to extend
//   - find.go, configured.go, list.go: find the files on a node
//   - pattern.go: a regular expression, and the words in it that the node can search
//   - tail.go: reads one file as records, from the agent
//   - merge.go: merges the records of many logs by time, with bounded memory
//   - nodes.go: reads the logs of several nodes, by SSH or the API server
//   - print.go, report.go: what `swdt logs` and `swdt logs list` print
//   - api.go: reads logs through the API server, if SSH is not available
package logs

import (
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/inspect/events"
)

// Record is one line of one log.
type Record struct {
	Time   time.Time // zero if neither the line nor a line before it has a time
	Node   string
	Source string // kubelet, pod/NS/NAME/CONTAINER, event:System, …
	File   string // the path of the log file on the node
	Level  logline.Level
	Stream string // stdout or stderr of a container
	Text   string
	Event  *events.Event // of a source event:CHANNEL
	// Raw has whole lines as they are in the file. If it is set, only Node, Source and
	// File are set beside it: see Options.Verbatim.
	Raw []byte
}

// Options select lines.
type Options struct {
	Sources []string  // none: the logs of the node's services, as far as they exist
	Since   time.Time // zero: from the beginning
	Until   time.Time // zero: to the end
	Tail    int       // number of the last lines of each log; negative: all
	Follow  bool
	Grep    *Pattern      // nil: every line
	Level   logline.Level // and worse; Unknown: every line

	EventIDs []int // for the channels among Sources; none: all
	// Verbatim passes the lines of a single log on without parsing them, for a sink that
	// needs only their text.
	Verbatim bool
}
