package capture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/pcapng"
)

// at returns a time of the tests, in seconds after their beginning.
func at(seconds int) time.Time {
	return time.Unix(1_700_000_000, 0).UTC().Add(time.Duration(seconds) * time.Second)
}

// round returns a part with a file of packets that have these times.
func round(t *testing.T, node string, seconds ...int) Part {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "packets.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := pcapng.NewWriter(file, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(pcapng.Interface{LinkType: pcapng.Ethernet}); err != nil {
		t.Fatal(err)
	}
	for _, s := range seconds {
		if err := w.Write(pcapng.Packet{Time: at(s), Data: []byte{byte(s)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return Part{Names: Names{Node: node}, Export: Export{Packets: file.Name()}}
}

// written returns the times of the packets that a stream has written so far.
func written(t *testing.T, out *bytes.Buffer) (seconds []int) {
	t.Helper()
	r := pcapng.NewReader(bytes.NewReader(out.Bytes()))
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return seconds
		}
		if err != nil {
			t.Fatal(err)
		}
		seconds = append(seconds, int(p.Time.Sub(at(0))/time.Second))
	}
}

// A packet is written as soon as no node can send an older one.
func TestAStreamIsInOrderOfTime(t *testing.T) {
	var out bytes.Buffer
	s, err := NewStream(&out, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() == 0 {
		t.Error("nothing is written before the first packet")
	}
	steps := []struct {
		part  Part
		until int
		want  []int
	}{
		{round(t, "a", 1, 3, 5), 6, nil}, // b may have older ones
		{round(t, "b", 2, 4), 4, []int{1, 2, 3, 4}},
		{round(t, "b", 7), 8, []int{1, 2, 3, 4, 5}},
		{round(t, "a"), 9, []int{1, 2, 3, 4, 5, 7}}, // nothing was captured
	}
	for i, step := range steps {
		if err := s.Add(step.part, at(step.until)); err != nil {
			t.Fatal(err)
		}
		if got := written(t, &out); !slices.Equal(got, step.want) {
			t.Errorf("after step %d: %v, want %v", i, got, step.want)
		}
	}
	if err := errors.Join(s.Add(round(t, "a", 10), time.Time{}), s.End("b")); err != nil {
		t.Fatal(err)
	}
	if err := s.End("a"); err != nil {
		t.Fatal(err)
	}
	if got := written(t, &out); !slices.Equal(got, []int{1, 2, 3, 4, 5, 7, 10}) {
		t.Errorf("in the end: %v", got)
	}
	switch a, b := s.Count("a"), s.Count("b"); {
	case a.Packets != 4:
		t.Errorf("a.Packets = %v, want 4", a.Packets)
	case b.Packets != 3:
		t.Errorf("b.Packets = %v, want 3", b.Packets)
	case b.Interfaces["b"] != 3:
		t.Errorf("b.Interfaces[\"b\"] = %v, want 3; %+v, %+v", b.Interfaces["b"], a, b)
	}
	for _, step := range steps {
		if _, err := os.Stat(step.part.Export.Packets); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", step.part.Export.Packets, err)
		}
	}
}

// A node that sends nothing, or has a slow clock, delays the packets of the others by at most
// maxLag.
func TestStreamBoundsItsWait(t *testing.T) {
	var out bytes.Buffer
	s, err := NewStream(&out, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(round(t, "b", 1), at(2)); err != nil {
		t.Fatal(err)
	}
	for seconds := 10; seconds <= 30; seconds += 10 {
		if err := s.Add(round(t, "a", seconds), at(seconds+1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := written(t, &out); !slices.Equal(got, []int{1, 10, 20}) {
		t.Errorf("got is %v, want %v", got, []int{1, 10, 20})
	}
}

// Close drops the packets that still wait, and removes their files.
func TestAbandonedStream(t *testing.T) {
	s, err := NewStream(io.Discard, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	part := round(t, "a", 1)
	if err := errors.Join(s.Add(part, at(2)), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(part.Export.Packets); !errors.Is(err, os.ErrNotExist) || s.Count("a").Packets != 0 {
		t.Errorf("it is left: %v", err)
	}
}

// A file that is not pcapng is an error.
func TestAStreamOfNonsense(t *testing.T) {
	s, err := NewStream(io.Discard, "a")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "packets.pcapng")
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	var wrong *pcapng.FormatError
	if err := s.Add(Part{Names: Names{Node: "a"}, Export: Export{Packets: path}}, at(1)); !errors.As(err, &wrong) {
		t.Errorf("the error is %v, a %T, want a %T", err, err, wrong)
	}
}
