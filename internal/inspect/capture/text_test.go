package capture

import (
	"errors"
	"slices"
	"testing"
)

// pktmonText has the example of Microsoft's page about dropped packets, and a packet in the
// format of real-time mode.
const pktmonText = "[30]0000.0000::2025-03-27 16:10:34.934020500 [Microsoft-Windows-PktMon] Drop: PktGroupId " +
	"8444249301423149, PktNumber 1, Appearance 0, Direction Rx , Type IP , Component 49, Filter 1, DropReason INET: " +
	"transport endpoint was not found , DropLocation 0xE000460A, OriginalSize 402, LoggedSize 148 \r\n" +
	"       Drop: ip: 192.168.5.88.50005 > 192.168.5.68.50005: UDP, length 374\r\n" +
	"16:10:35.123456789 PktGroupId 1, PktNumber 1, Appearance 1, Direction Tx , Type Ethernet , Component 62, Edge " +
	"1, Filter 1, OriginalSize 98, LoggedSize 98 \r\n" +
	"\t00-15-5D-01-02-03 > 00-15-5D-04-05-06, ethertype IPv4 (0x0800), length 98: 10.0.0.1 > 10.0.0.2: ICMP echo " +
	"request\r\n" +
	"\r\nNonsense about nothing PktGroupId\r\n"

func TestPktmonsText(t *testing.T) {
	want := []Packet{
		{Time: "16:10:34.934020", Direction: "Rx", Component: "49",
			DropReason: "INET: transport endpoint was not found", DropLocation: "0xE000460A",
			Text: "ip: 192.168.5.88.50005 > 192.168.5.68.50005: UDP, length 374"},
		{Time: "16:10:35.123456", Direction: "Tx", Component: "62",
			Text: "00-15-5D-01-02-03 > 00-15-5D-04-05-06, ethertype IPv4 (0x0800), length 98: 10.0.0.1 > 10.0.0.2: " +
				"ICMP echo request"},
	}
	for size := 1; size < len(pktmonText); size += 7 {
		var got []Packet
		lines := &packetLines{each: func(p Packet) error { got = append(got, p); return nil }}
		for rest := []byte(pktmonText); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if _, err := lines.Write(rest[:min(size, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) < 2 || !slices.Equal(got[:2], want) {
			t.Fatalf("in pieces of %d: %+v", size, got)
		}
	}
	if line := want[0].String(); line != "16:10:34.934020  Rx  component 49  ip: 192.168.5.88.50005 > "+
		"192.168.5.68.50005: UDP, length 374  DROPPED: INET: transport endpoint was not found" {
		t.Error(line)
	}
}

func TestAReasonWithACommaAndALineWithoutEnd(t *testing.T) {
	p, ok := parseAbout("Drop: PktGroupId 1, Component 4, DropReason MTU, or something , DropLocation 0x1, " +
		"OriginalSize 9")
	switch {
	case !ok:
		t.Error("ok = false, want true")
	case p.DropReason != "MTU, or something":
		t.Errorf("p.DropReason = %q, want %q", p.DropReason, "MTU, or something")
	case p.DropLocation != "0x1":
		t.Errorf("p.DropLocation = %q, want %q; %+v", p.DropLocation, "0x1", p)
	}
	var got []Packet
	lines := &packetLines{each: func(p Packet) error { got = append(got, p); return nil }}
	switch _, err := lines.Write(make([]byte, 1<<20)); {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case len(got) > 0:
		t.Errorf("len(got) = %v, want 0: %+v", len(got), got)
	case len(lines.rest) > maxLine:
		t.Errorf("len(lines.rest) = %v, want at most %v; %d packets, %d bytes held, %v", len(lines.rest), maxLine,
			len(got), len(lines.rest), err)
	}
}

func TestDropIsCountedOnlyIfReported(t *testing.T) {
	lines := &sightingLines{}
	if err := lines.add([]byte(pktmonText)); err != nil {
		t.Fatal(err)
	}
	dropped := Sighting{Component: "49", Size: 148, Reason: "INET: transport endpoint was not found",
		Location: "0xE000460A"}
	if !slices.Equal(lines.Dropped, []Sighting{dropped}) ||
		!slices.Equal(lines.Passed, []Sighting{{Component: "62", Size: 98}}) {
		t.Errorf("%+v", lines.Sightings)
	}
}

func TestPrintingThatFailsIsAnError(t *testing.T) {
	gone := errors.New("stdout is gone")
	lines := &packetLines{each: func(Packet) error { return gone }}
	if _, err := lines.Write([]byte(pktmonText)); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}
