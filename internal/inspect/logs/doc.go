// Package logs reads and follows the logs of nodes' programs, and merges several logs of
// several nodes by time.
//
//   - sources.go: lists the places of each program's logs; to add a program, extend this
//     table
//   - find.go, configured.go, list.go: find the files on a node
//   - pattern.go: a regular expression, and the words in it for which the node can
//     search
//   - show.go: reads the logs of one node, by SSH
//   - tail.go: reads one file as records, from the agent
//   - merge.go: merges the records of many logs by time, with bounded memory
//   - count.go: the errors of one program
//   - nodes.go: reads the logs of several nodes, by SSH or the API server
//   - print.go, report.go: print the output of `swdt logs` and `swdt logs list`
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
	Source string // such as kubelet, pod/NS/NAME/CONTAINER or event:System
	File   string // the path of the log file on the node
	Level  logline.Level
	Stream string // stdout or stderr of a container
	Text   string
	Event  *events.Event // the event, if the source is event:CHANNEL
	// Raw has whole lines as they are in the file. If Raw is set, the only other fields
	// that are set are Node, Source and File: see Options.Verbatim.
	Raw []byte
}

// Options select lines.
type Options struct {
	Sources []string  // names of sources; no names: kubelet, containerd and kube-proxy
	Since   time.Time // lines from this time on; zero: from the beginning
	Until   time.Time // zero: to the end
	Tail    int       // how many of each log's last lines to read; negative: all
	Follow  bool
	Grep    *Pattern      // nil: every line
	Level   logline.Level // lines of this level or worse; Unknown: every line

	// ReportUntimed requests a warning for each log that is filtered by time and has lines without a time.
	ReportUntimed bool

	EventIDs []int // ids of the wanted events of the channels among Sources; no ids: all events
	// Verbatim requests that the lines of a single log are passed on without parsing,
	// for a sink that needs only their text.
	Verbatim bool
}
