// Package capture captures packets on a node with its packet monitor, pktmon, and
// brings them here as pcapng.
//
// The node's side (package pktmon) begins a capture, guards it and ends it; what
// is here knows what to ask for and what to make of the answer:
//
//   - dialect.go: what this node's pktmon can do, which depends on its Windows
//   - commandline.go: filters and options as pktmon's arguments
//   - run.go: one capture on one node, for as long as it is wanted
//   - show.go: what a live capture prints
//   - rounds.go: a capture's packets, fetched while it goes on
//   - text.go: what pktmon prints about packets
//   - export.go: a log of the node's as a pcapng file here, with what its text says
//   - pods.go: pods and their addresses
//   - component.go: where in the network stack a packet was seen, and whose that is
//   - place.go: whose a packet is, and why it was dropped
//   - merge.go, stream.go: the captures of several nodes as one, at their end or
//     while they go on
package capture

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/pktmon"
)

// Options say what is captured.
type Options struct {
	Addresses  []netip.Prefix
	Ports      []uint16
	Protocols  []string // tcp, udp, icmp, icmpv6, or a number
	MACs       []string // 00-15-5D-01-02-03
	Components string   // of the network stack: all, nics, or numbers; empty: all
	Drops      bool     // only packets that were dropped
	Live       bool     // show packets as they come, and keep none
	For        time.Duration
	MaxSize    int64 // of the log on the node, bytes
	Force      bool  // end what somebody else captures
	Holder     string

	// Round, where it is not 0, is how often Fetched gets what was captured since.
	// pktmon gives out no packets while it captures: it is stopped and begun anew.
	Round   time.Duration
	Fetched func(Round) error
	Folder  string // of the files that Fetched gets

	// Stop, once closed, ends the capture in good order. Nil: only its time does.
	Stop <-chan struct{}
	// Packet gets what a live capture shows.
	Packet func(Packet) error
	// Begun is called when the node captures.
	Begun func()
}

// Result is what a capture on one node gave.
type Result struct {
	// Reason is why it ended.
	Reason string
	// Warnings are what somebody should know.
	Warnings []string
	// ID is the capture's on the node; Exportable, that its packets can be had as
	// pcapng there.
	ID         string
	Exportable bool
	dialect    Dialect
	// Rounds are those of a capture that was fetched while it went on.
	Rounds pktmon.Rounds
}

// BusyError: somebody else captures on the node.
type BusyError struct {
	Running string   // what pktmon says of it; empty: nothing runs
	Filters []string // lines of its list
}

func (e *BusyError) Error() string {
	var what []string
	if e.Running != "" {
		what = append(what, "a capture runs:\n    "+strings.Join(trimmed(e.Running), "\n    "))
	}
	if len(e.Filters) > 0 {
		what = append(what, "there are filters:\n    "+strings.Join(e.Filters, "\n    "))
	}
	return fmt.Sprintf("somebody else uses the node's packet monitor, of which there is one: %s\n--force ends the capture and removes the filters",
		strings.Join(what, "\n  and "))
}

func trimmed(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// FailedError: pktmon did not do what it was told.
type FailedError struct{ Reason string }

func (e *FailedError) Error() string { return "capture packets: " + e.Reason }
