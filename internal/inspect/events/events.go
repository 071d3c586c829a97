// Package events reads a node's Windows event log: the events of Windows itself, the
// Service Control Manager, Hyper-V's compute service, the virtual switch and the host
// network service.
//
// The node's own wevtutil.exe reads and filters the events on the node, and this package parses the
// XML that wevtutil.exe prints. The agent contains no code for events.
//
//   - channels.go: the channels that matter to a Kubernetes node; the table to extend
//   - query.go: the arguments of wevtutil, built only from numbers and times
//   - xml.go: parses the answer
//   - read.go: reads and follows a channel
//   - export.go: writes a channel to a file in Windows' own format
package events

import (
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// Event is one event.
type Event struct {
	Time     time.Time
	Channel  string
	Provider string
	ID       int
	Record   uint64 // number of the record in the channel
	Level    logline.Level
	Computer string
	Process  int // id of the process that logged the event
	Message  string
	Data     []Datum // the values that the message contains
}

// Datum is one of an event's values. Name is empty if the value has no name.
type Datum struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Query selects events.
type Query struct {
	Channels []string // names, with * for any text, or names of Groups
	IDs      []int    // ids of the wanted events; no ids: all events
	Level    logline.Level
	Since    time.Time
	Until    time.Time
	Last     int // how many stored events to read from the end of each channel; 0: none; negative: all
	Follow   bool
	Wants    func(Event) bool // selects events on your machine, not on the node; nil: all events
}
