// Package pcapng reads, writes and merges packet captures in the pcapng format,
// as far as captures of packets need it: sections, interfaces, packets, comments.
//
//   - reader.go: packets of any section, in either byte order
//   - writer.go: one section, to which interfaces can be added between packets
//   - merge.go: several captures as one, in order of time
//
// Other blocks (name resolution, statistics, secrets, private ones) are
// skipped.
package pcapng

import (
	"fmt"
	"time"
)

// Interface is the network interface at which packets were captured.
type Interface struct {
	Name        string
	Description string
	LinkType    uint16 // 1: Ethernet
	SnapLength  uint32 // longest packet that is kept completely; 0: any
}

// Ethernet is the link type of nearly all captures.
const Ethernet = 1

// Packet is one packet as captured at one place.
type Packet struct {
	Interface int // index into the reader's or writer's interfaces
	Time      time.Time
	Data      []byte
	Length    int // length on the wire in bytes; Data may be shorter
	Comment   string
}

// Block types and options.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockSimple    = 3
	blockPacket    = 6

	optionEnd         = 0
	optionComment     = 1
	optionName        = 2 // of an interface
	optionDescription = 3
	optionApplication = 4 // of a section
	optionResolution  = 9
	optionOffset      = 14

	magic = 0x1a2b3c4d
	// maxBlock limits the declared size of a block, in bytes.
	maxBlock = 16 << 20
)

// FormatError reports an invalid file.
type FormatError struct {
	Offset int64 // of the block, in bytes
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("not a pcapng capture: %s at byte %d", e.Reason, e.Offset)
}
