package events

import (
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

func TestTheQueryIsMadeOfNumbersAndTimes(t *testing.T) {
	q := Query{IDs: []int{7031}, Level: logline.Warning, Since: time.Date(2026, 11, 20, 14, 0, 0,
		0, time.FixedZone("", 3600)), Last: 5}
	got := strings.Join(q.arguments(selected{channel: "System", ids: []int{7031, 7034}}, span{})[0], " ")
	want := "qe System /f:RenderedXml /uni:true /q:*[System[(EventID=7031) and " +
		"(Level=1 or Level=2 or Level=3) and " +
		"TimeCreated[@SystemTime>='2026-11-20T13:00:00.000Z']]] /rd:true /c:5"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, name := range []string{"System /c:1\" x", "a'b", "x|y", "", "*", "%PATH%"} {
		if CheckName(name) == nil {
			t.Errorf("%q passes for a channel", name)
		}
	}
	if err := CheckName("Microsoft-Windows-Windows Defender/Operational"); err != nil {
		t.Error(err)
	}
}

// The events do not depend on the pieces in which the bytes arrive.
func TestTheAnswerInPieces(t *testing.T) {
	const text = "<Event xmlns='x'><System><Provider Name='Ünï'/><EventID Qualifiers='1'>5</EventID><Level>3</Level>" +
		"<TimeCreated SystemTime='2026-11-20T14:00:00.1234567Z'/>" +
		"<EventRecordID>9</EventRecordID><Channel>System</Channel></System>" +
		"<RenderingInfo><Message>bell &#x7; \U0001F600 " +
		"&amp;</Message></RenderingInfo></Event>\r\n<Event><broken</Event>"
	var wide []byte
	for _, r := range text {
		if r > 0xffff {
			r -= 0x10000
			wide = append(wide, byte(r>>10), byte(0xd8+r>>18), byte(r), byte(0xdc+(r>>8)&3))
			continue
		}
		wide = append(wide, byte(r), byte(r>>8))
	}
	for name, data := range map[string][]byte{"utf-8": []byte(text), "utf-16": wide,
		"utf-16 with a byte order mark": append([]byte{0xff, 0xfe}, wide...)} {
		for size := 1; size < 9; size++ {
			var got []Event
			d := &decoder{each: func(e Event) error { got = append(got, e); return nil }}
			for rest := data; len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if _, err := d.Write(rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case len(got) != 2:
				t.Fatalf("len(got) = %v, want 2: %+v", len(got), got)
			case got[0].Provider != "Ünï":
				t.Fatalf("got[0].Provider = %q, want %q", got[0].Provider, "Ünï")
			case got[0].ID != 5:
				t.Fatalf("got[0].ID = %v, want 5", got[0].ID)
			case got[0].Level != logline.Warning:
				t.Fatalf("got[0].Level = %v, want %v", got[0].Level, logline.Warning)
			case got[0].Record != 9:
				t.Fatalf("got[0].Record = %v, want 9", got[0].Record)
			case got[0].Message != "bell   \U0001F600 &":
				t.Fatalf("got[0].Message = %q, want %q", got[0].Message, "bell   \U0001F600 &")
			case got[0].Time.Nanosecond() != 123456700:
				t.Fatalf("got[0].Time.Nanosecond() is wrong; %s in pieces of %d: %+v", name, size, got)
			case !strings.Contains(got[1].Message, "cannot parse"):
				t.Fatalf("got[1].Message lacks %q:\n%s; %s in pieces of %d: %+v", "cannot parse", got[1].Message,
					name, size, got)
			}
		}
	}
}

func TestNamesThatOverlap(t *testing.T) {
	r := &Reader{present: []string{"System", "Application"}}
	for _, names := range [][]string{{"services", "System"}, {"System", "services"}, {"system", "System"}} {
		channels, err := r.Channels(names)
		switch {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case len(channels) != 1:
			t.Errorf("len(channels) = %v, want 1: %+v", len(channels), channels)
		case len(channels[0].chosen.ids) != 0:
			t.Errorf("len(channels[0].chosen.ids) = %v, want 0; %q: %+v, %v", len(channels[0].chosen.ids), names,
				channels, err)
		}
	}
}
