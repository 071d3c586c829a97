// Package events reads a node's Windows event log: what Windows itself, the
// Service Control Manager, Hyper-V's compute service, the virtual switch and the
// host network service say.
//
// The node's own wevtutil.exe does it, which filters on the node; its XML is read
// here. The agent carries no code for it.
//
//   - channels.go: the channels that matter to a node of Kubernetes; the table to extend
//   - query.go: what is asked of wevtutil, built of numbers and times alone
//   - xml.go: its answer
//   - read.go: one channel, and what comes to it
//   - export.go: one channel as a file of Windows' own format
package events

import (
	"time"

	"github.com/swdt-dev/swdt/internal/logline"
)

// Event is one event.
type Event struct {
	Time     time.Time
	Channel  string
	Provider string
	ID       int
	Record   uint64 // its number in the channel
	Level    logline.Level
	Computer string
	Process  int // that logged it
	Message  string
	Data     []Datum // what the message was made of
}

// Datum is one of an event's values; some have no name.
type Datum struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value"`
}

// Query says which events are wanted.
type Query struct {
	Channels []string // names, with * for anything, or those of Groups
	IDs      []int    // none: all
	Level    logline.Level
	Since    time.Time
	Until    time.Time
	Last     int // of each channel; negative: all
	Follow   bool
	Wants    func(Event) bool // nil: all; asked here and not on the node
}
