package events

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// maxEvent is the largest size of an event in bytes. Windows allows 64 KiB of data.
const maxEvent = 1 << 20

// decoder is a writer for wevtutil's output: a sequence of <Event> elements with nothing
// around them.
type decoder struct {
	each     func(Event) error
	pending  []byte
	searched int  // number of bytes at the beginning of pending that contain no end of an event
	wide     bool // the output is UTF-16, which /uni:true requests
	odd      []byte
	begun    bool
}

func (d *decoder) Write(data []byte) (int, error) {
	text := d.narrow(data)
	d.pending = append(d.pending, text...)
	end := []byte("</Event>")
	rest := d.pending
	for {
		from := min(d.searched, len(rest)) // search each byte once, however small the pieces are
		at := bytes.Index(rest[from:], end)
		if at < 0 {
			break
		}
		one := rest[:from+at+len(end)]
		if begin := bytes.Index(one, []byte("<Event")); begin >= 0 {
			if err := d.each(parse(one[begin:])); err != nil {
				return 0, err
			}
		}
		rest, d.searched = rest[len(one):], 0
	}
	d.pending = append(d.pending[:0], rest...)
	d.searched = max(0, len(d.pending)-len(end)+1)
	if len(d.pending) > maxEvent {
		return 0, fmt.Errorf("read an event: it has more than %d bytes", maxEvent)
	}
	return len(data), nil
}

// narrow converts UTF-16 to UTF-8. It detects UTF-16 by its byte order mark or by the zero
// byte after the first letter.
func (d *decoder) narrow(data []byte) []byte {
	data = append(d.odd, data...)
	d.odd = nil
	if !d.begun {
		if len(data) < 2 {
			d.odd = data
			return nil
		}
		d.begun = true
		d.wide = data[0] == 0xff && data[1] == 0xfe || data[1] == 0
		if d.wide && data[0] == 0xff {
			data = data[2:]
		}
	}
	if !d.wide {
		return data
	}
	text, used := logline.Wide{}.Narrow(nil, data, false)
	d.odd = bytes.Clone(data[used:])
	return text
}

// rendered is the XML form of an event.
type rendered struct {
	System struct {
		Provider struct {
			Name string `xml:"Name,attr"`
		}
		EventID     int
		Level       int
		TimeCreated struct {
			SystemTime string `xml:"SystemTime,attr"`
		}
		EventRecordID uint64
		Execution     struct {
			ProcessID int `xml:"ProcessID,attr"`
		}
		Channel  string
		Computer string
	}
	EventData struct {
		Data []struct {
			Name  string `xml:"Name,attr"`
			Value string `xml:",chardata"`
		}
	}
	UserData struct {
		Any []node `xml:",any"`
	}
	RenderingInfo struct {
		Message string
	}
}

// node is XML of unknown structure.
type node struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
	Any     []node `xml:",any"`
}

// parse reads one event. If the event cannot be parsed, parse returns an event whose message
// is the error.
func parse(text []byte) Event {
	var r rendered
	d := xml.NewDecoder(bytes.NewReader(clean(text)))
	d.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errors.New("unexpected encoding") }
	if err := d.Decode(&r); err != nil {
		return Event{Message: "swdt cannot parse this event: " + err.Error()}
	}
	e := Event{
		Channel: r.System.Channel, Provider: r.System.Provider.Name, ID: r.System.EventID,
		Record: r.System.EventRecordID,
		Level:  levelOf(r.System.Level), Computer: r.System.Computer, Process: r.System.Execution.ProcessID,
		Message: strings.TrimSpace(strings.ReplaceAll(r.RenderingInfo.Message, "\r\n", "\n")),
	}
	e.Time, _ = time.Parse(time.RFC3339Nano, r.System.TimeCreated.SystemTime)
	for _, datum := range r.EventData.Data {
		e.Data = append(e.Data, Datum{Name: datum.Name, Value: datum.Value})
	}
	for _, any := range r.UserData.Any {
		e.Data = leaves(e.Data, any)
	}
	if e.Message == "" { // the event's provider is not registered, or has no text for the event
		e.Message = spelled(e.Data)
	}
	return e
}

// leaves appends the names and values of all leaves of the tree n.
func leaves(to []Datum, n node) []Datum {
	if len(n.Any) == 0 {
		return append(to, Datum{Name: n.XMLName.Local, Value: strings.TrimSpace(n.Text)})
	}
	for _, below := range n.Any {
		to = leaves(to, below)
	}
	return to
}

func spelled(data []Datum) string {
	var parts []string
	for _, datum := range data {
		if datum.Name != "" {
			parts = append(parts, datum.Name+"="+datum.Value)
		} else if datum.Value != "" {
			parts = append(parts, datum.Value)
		}
	}
	return strings.Join(parts, " ")
}

// clean replaces the characters that XML 1.0 does not allow with spaces. Windows writes such
// characters, literally or as character references.
func clean(text []byte) []byte {
	text = bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, text)
	for c := range 0x20 {
		if c == '\t' || c == '\n' || c == '\r' {
			continue
		}
		for _, form := range []string{"&#x%X;", "&#x%x;", "&#%d;"} {
			text = bytes.ReplaceAll(text, fmt.Appendf(nil, form, c), []byte(" "))
		}
	}
	return text
}
