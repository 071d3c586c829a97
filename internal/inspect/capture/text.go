package capture

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Packet is the information that pktmon prints about one packet in one component.
type Packet struct {
	Time      string `json:"time"` // the node's local time
	Direction string `json:"direction"`
	Component string `json:"component"` // the component's number
	// Place is the name of the component. Pod is the NAMESPACE/NAME of the pod that owns the component.
	Place string `json:"place"`
	Pod   string `json:"pod"`
	// DropReason and DropLocation are set if the component dropped the packet.
	DropReason   string `json:"dropReason"`
	DropLocation string `json:"dropLocation"`
	Text         string `json:"packet"` // in tcpdump's form
}

// String returns the packet on one line.
func (p Packet) String() string {
	var parts []string
	for _, part := range []string{p.Time, p.Direction} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if p.Component != "" {
		parts = append(parts, p.seenBy())
	}
	line := strings.Join(append(parts, p.Text), "  ")
	if p.DropReason != "" {
		line += "  DROPPED: " + p.DropReason
	}
	return strings.TrimSpace(line)
}

func (p Packet) seenBy() string {
	text := "component " + p.Component
	if name := cmp.Or(p.Pod, p.Place); name != "" {
		text += " (" + name + ")"
	}
	return text
}

// aboutMark is a text that every line about a packet contains, in every language.
const aboutMark = "PktGroupId "

// mostSightings is the maximum number of sightings in a text. The maximum limits the memory that
// swdt needs, since the node determines the length of the text.
const mostSightings = 4 << 20

// maxLine is the length in bytes at which a line without an end is cut.
const maxLine = 64 << 10

// packetLines parses packets from pktmon's text. For each packet, the text has a line about the
// packet, then one line that prints the packet, or several lines if the packet encapsulates others.
// packetLines skips other lines.
type packetLines struct {
	each  func(Packet) error
	rest  []byte
	about *Packet // the packet whose lines follow
}

func (l *packetLines) Write(data []byte) (int, error) {
	l.rest = append(l.rest, data...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole && len(l.rest) < maxLine {
			return len(data), nil
		}
		l.rest = rest
		if err := l.line(string(line)); err != nil {
			return 0, err
		}
	}
}

func (l *packetLines) line(line string) error {
	if about, ok := parseAbout(line); ok {
		l.about = &about
		return nil
	}
	text := strings.TrimSpace(line)
	if l.about == nil || text == "" {
		return nil
	}
	p := *l.about
	p.Text = strings.TrimPrefix(text, "Drop: ")
	return l.each(p)
}

// parseAbout parses a line such as
//
//	[30]0000.0000::2025-03-27 16:10:34.934020500 [Microsoft-Windows-PktMon] Drop: PktGroupId 84, PktNumber 1,
//	Appearance 0, Direction Rx , Type IP , Component 49, Filter 1, DropReason INET: endpoint was not found ,
//	DropLocation 0xE000460A, OriginalSize 402, LoggedSize 148
//
// The part before PktGroupId differs between builds and options.
func parseAbout(line string) (Packet, bool) {
	before, fields, ok := strings.Cut(line, aboutMark)
	if !ok {
		return Packet{}, false
	}
	p := Packet{Time: clock(before)}
	known := map[string]*string{
		"Direction": &p.Direction, "Component": &p.Component, "DropReason": &p.DropReason,
		"DropLocation": &p.DropLocation,
	}
	var last *string
	for field := range strings.SplitSeq(fields, ", ") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), " ")
		to, ok := known[name]
		switch {
		case ok:
			*to, last = strings.TrimSpace(value), to
		case last == &p.DropReason && !isField(name): // a reason may have commas
			p.DropReason += ", " + strings.TrimSpace(field)
		default:
			last = nil
		}
	}
	return p, true
}

func isField(name string) bool {
	switch name {
	case "PktNumber", "Appearance", "Direction", "Type", "Component", "Edge", "Filter", "DropReason", "DropLocation",
		"OriginalSize", "LoggedSize":
		return true
	}
	return false
}

// clock returns the time of day in a line, cut to microseconds.
func clock(text string) string {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" []", r) }) {
		if _, err := time.Parse("15:04:05", word); err == nil { // this format also accepts fractions
			return word[:min(len(word), len("15:04:05.000000"))]
		}
	}
	return ""
}

// Sighting is the information on one packet in one component, without its bytes.
type Sighting struct {
	Component        string // the component's number
	Size             int    // number of stored bytes of the packet
	Reason, Location string // why and where the packet was dropped; "": it was not dropped
}

// Sightings has the sightings of the packets that passed and of the packets that were dropped.
type Sightings struct{ Passed, Dropped []Sighting }

// sightingLines parses the lines about packets.
type sightingLines struct {
	Sightings
	rest  []byte
	names map[string]string // stores each text once, since there may be millions of lines
}

func (l *sightingLines) add(data []byte) error {
	l.rest = append(l.rest, data...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole && len(l.rest) < maxLine {
			return nil
		}
		l.rest = rest
		if len(l.Passed)+len(l.Dropped) >= mostSightings {
			return fmt.Errorf("the node's text names more than %d packets", mostSightings)
		}
		about, ok := parseAbout(string(line))
		if !ok {
			continue
		}
		s := Sighting{Component: l.once(about.Component), Size: loggedSize(string(line)),
			Reason: l.once(about.DropReason), Location: l.once(about.DropLocation)}
		if s.Reason != "" {
			l.Dropped = append(l.Dropped, s)
		} else {
			l.Passed = append(l.Passed, s)
		}
	}
}

func (l *sightingLines) once(text string) string {
	if l.names == nil {
		l.names = map[string]string{}
	}
	same, ok := l.names[text]
	if !ok {
		same = strings.Clone(text)
		l.names[same] = same
	}
	return same
}

// loggedSize returns the stored size of a packet, or 0 if the line does not have it.
func loggedSize(line string) int {
	_, after, _ := strings.Cut(line, "LoggedSize ")
	size, err := strconv.Atoi(strings.TrimRight(after, " \r"))
	if err != nil {
		return 0
	}
	return size
}
