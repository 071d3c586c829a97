package logline_test

import (
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

func TestParse(t *testing.T) {
	zone := time.FixedZone("node", 2*3600)
	now := time.Date(2027, 1, 2, 12, 0, 0, 0, zone)
	at := func(nanoseconds int) time.Time { return time.Date(2026, 12, 31, 14, 29, 59, nanoseconds, time.UTC) }
	for _, c := range []struct {
		line   string
		time   time.Time
		level  logline.Level
		format logline.Format
		text   string // empty: the line
	}{
		{line: `W1231 16:29:59.123456    4242 server.go:210] "msg"`, time: at(123456000), level: logline.Warning,
			format: logline.Klog},
		{line: `time="2026-12-31T14:29:59.5Z" level=error msg="x"`, time: at(500000000), level: logline.Error,
			format: logline.Logfmt},
		{line: `level=info ts=2026-12-31T15:29:59+01:00 msg=x`, time: at(0), level: logline.Info,
			format: logline.Logfmt},
		{line: `{"ts":1798727399123.25,"caller":"x.go:1","msg":"m","v":0}`, time: at(123250000), level: logline.Info,
			format: logline.JSON},
		{line: `{"ts":1798727399.5,"msg":"m","err":"bad"}`, time: at(500000000), level: logline.Error,
			format: logline.JSON},
		{line: `{"level":"warn","time":"2026-12-31T14:29:59Z","msg":"m"}`, time: at(0), level: logline.Warning,
			format: logline.JSON},
		{line: `{"time": "2026-12-31T14:29:59Z", "level": "ERROR", "msg": "m"}`, time: at(0), level: logline.Error,
			format: logline.JSON},
		{line: "2026-12-31T14:29:59.1234567Z stderr F E1231 01:02:03.000000 1 x.go:1] inner", time: at(123456700),
			level:  logline.Error,
			format: logline.CRI, text: "E1231 01:02:03.000000 1 x.go:1] inner"},
		{line: "2026-12-31 16:29:59.500 [ERROR][123] felix/x.go 1: text", time: at(500000000), level: logline.Error},
		{line: "2026-12-31T14:29:59.500Z|00001|vlog|WARN|opened", time: at(500000000), level: logline.Warning},
		{line: "12/31/2026 4:29:59 PM started", time: at(0)},
		{line: "[12/31/2026 16:29:59] started", time: at(0)},
		{line: "31/12/2026 16:29:59 started", time: at(0)},
		{line: "2026-12-31T16:29:59,500 comma", time: at(500000000)},
		{line: "   at System.Thing.Do() in C:\\x.cs:line 12"},
		{line: "version 2026-13-41T99:00:00Z is none"},
		{line: "10.0.20348.2849"},
		{line: ""},
		{line: "I1"},
	} {
		got := logline.Parse([]byte(c.line+"\r\n"), now)
		if c.text == "" {
			c.text = c.line
		}
		switch {
		case !got.Time.Equal(c.time):
			t.Errorf("got.Time is %v, want %v", got.Time, c.time)
		case got.Level != c.level:
			t.Errorf("got.Level is %v, want %v", got.Level, c.level)
		case got.Format != c.format:
			t.Errorf("got.Format is %v, want %v", got.Format, c.format)
		case got.Text != c.text:
			t.Errorf("got.Text is %v, want %v", got.Text, c.text)
		}
	}
}

// No input panics, and a parsed time is a valid one.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"I0231 25:61:61.1 x", "2026-02-30T00:00:00.+", `{"ts":1798727399123.25`, "1/1/1/1", "I1120 14:29:59.",
		"2026-11-20T14:29:59-99:99 stdout P", `"ts":1`,
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, line []byte) {
		got := logline.Parse(line, now)
		if at := got.Time; !at.IsZero() && at.Year() < 1971 {
			t.Errorf("%q: %v", line, at)
		}
		if got.Partial && got.Format != logline.CRI {
			t.Errorf("%q: %+v", line, got)
		}
	})
}
