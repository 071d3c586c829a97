// Package capture captures packets on nodes with their packet monitor, pktmon, and
// downloads them as pcapng.
//
// The node's side (package pktmon) starts a capture, guards it and ends it. This package
// builds the request and processes the result:
//
//   - dialect.go: detects the features of the node's pktmon, which differ between builds
//     of Windows
//   - commandline.go: filters and options as pktmon's arguments
//   - run.go: runs one capture on one node
//   - show.go: prints the packets of a live capture
//   - rounds.go: fetches packets while the capture goes on
//   - text.go: parses pktmon's text about packets
//   - export.go: downloads a log as pcapng, and the information about packets in
//     pktmon's text
//   - pods.go: addresses of pods and Services
//   - component.go: the components of the network stack, and the pods that own them
//   - place.go: finds the pod of a packet, and the reason if the packet was dropped
//   - onenode.go: captures on one node and downloads its packets
//   - unfetched.go: finds the packets that an earlier capture left on a node
//   - named.go: the addresses of named pods and Services
//   - report.go, stdout.go: write the files and the output of `swdt capture`
//   - merge.go, stream.go: merge the captures of several nodes, after they have ended or
//     while they go on
//   - stage.go: creates the folder for fetched files
//   - vfp.go, vfptext.go: the ports of the virtual switch and their counters, and the output
//     of `swdt capture vfp`
package capture

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/wire/captureplan"
)

// Options select the packets to capture, and configure the capture.
type Options struct {
	Addresses  []netip.Prefix
	Ports      []uint16
	Protocols  []string // tcp, udp, icmp, icmpv6, or a number
	MACs       []string // 00-15-5D-01-02-03
	Components string   // components of the network stack: all, nics, or numbers; empty: all
	Drops      bool     // capture only packets that were dropped
	Live       bool     // print packets as they are captured, and store none
	For        time.Duration
	MaxSize    int64 // the maximum size of the log on the node, in bytes
	Force      bool  // end another program's capture
	Holder     string

	// Round, if it is not 0, is the interval at which Fetched receives the packets captured since
	// the previous call. swdt stops and starts pktmon again for each round, since pktmon returns no
	// packets while it captures.
	Round   time.Duration
	Fetched func(Round) error
	Folder  string // the local folder for the files that Fetched receives

	// Closing Stop ends the capture. If Stop is nil, only For and the end of the context end the
	// capture.
	Stop <-chan struct{}
	// Packet receives the packets of a live capture.
	Packet func(Packet) error
	// Begun is called when the capture has started on the node.
	Begun func()
}

// Result is the result of a capture on one node.
type Result struct {
	// Reason describes why the capture ended.
	Reason string
	// Warnings are for the user.
	Warnings []string
	// ID is the capture's ID on the node. Exportable reports whether the node can convert the
	// capture's packets to pcapng.
	ID         string
	Exportable bool
	dialect    Dialect
	// Rounds has the rounds of a capture whose packets were fetched before its end.
	Rounds captureplan.Rounds
}

// BusyError reports that another program captures on the node, or has set filters.
type BusyError struct {
	Running string   // pktmon's description of the running capture; empty: no capture runs
	Filters []string // lines of pktmon's list of filters
}

func (e *BusyError) Error() string {
	var what []string
	if e.Running != "" {
		what = append(what, "a capture runs:\n    "+strings.Join(trimmed(e.Running), "\n    "))
	}
	if len(e.Filters) > 0 {
		what = append(what, "there are filters:\n    "+strings.Join(e.Filters, "\n    "))
	}
	return fmt.Sprintf("another program uses the node's only packet monitor: %s\n--force ends its capture and "+
		"removes its filters",
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

// FailedError reports that pktmon failed.
type FailedError struct{ Reason string }

func (e *FailedError) Error() string { return "capture packets: " + e.Reason }
