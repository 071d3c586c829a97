package pcapng_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/pcapng"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 123456789, time.UTC)

// capture writes packets at the given milliseconds after noon.
func capture(t testing.TB, name string, after ...int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := pcapng.NewWriter(&out, "test")
	if err != nil {
		t.Fatal(err)
	}
	number, err := w.AddInterface(pcapng.Interface{Name: name, LinkType: pcapng.Ethernet})
	if err != nil {
		t.Fatal(err)
	}
	for _, ms := range after {
		text := fmt.Sprintf("%s at %d", name, ms)
		p := pcapng.Packet{Interface: number, Time: noon.Add(time.Duration(ms) * time.Millisecond),
			Data: []byte(text), Length: 1500}
		if ms%2 == 1 {
			p.Comment = "odd: " + text
		}
		if err := w.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func packets(t *testing.T, data []byte) (all []string) {
	t.Helper()
	r := pcapng.NewReader(bytes.NewReader(data))
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %s/%d %q", p.Time.Format("05.000000000"), r.Interface(p.Interface).Name,
			p.Data, p.Length, p.Comment))
	}
}

func TestReaderReturnsWrittenPackets(t *testing.T) {
	got := packets(t, capture(t, "node-1/default/web", 0, 1, 2))
	want := []string{
		`00.123456789 node-1/default/web node-1/default/web at 0/1500 ""`,
		`00.124456789 node-1/default/web node-1/default/web at 1/1500 "odd: node-1/default/web at 1"`,
		`00.125456789 node-1/default/web node-1/default/web at 2/1500 ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestMergeIsInOrderOfTime(t *testing.T) {
	var out bytes.Buffer
	w, err := pcapng.NewWriter(&out, "test")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string, after ...int) pcapng.Source {
		return pcapng.Source{Name: name, Reader: pcapng.NewReader(bytes.NewReader(capture(t, name, after...)))}
	}
	renamed := read("c", 4, 5)
	renamed.Place = func(p *pcapng.Packet, i pcapng.Interface) pcapng.Interface {
		p.Comment, i.Name = "dropped", "a"
		return i
	}
	count, err := pcapng.Merge(w, read("a", 0, 6), read("b", 2, 8, 10), renamed, read("empty"))
	if err != nil || count != 7 {
		t.Fatalf("%d packets, %v", count, err)
	}
	want := []string{
		`00.123456789 a a at 0/1500 ""`, `00.125456789 b b at 2/1500 ""`, `00.127456789 a c at 4/1500 "dropped"`,
		`00.128456789 a c at 5/1500 "dropped"`, `00.129456789 a a at 6/1500 ""`,
		`00.131456789 b b at 8/1500 ""`, `00.133456789 b b at 10/1500 ""`,
	}
	if got := packets(t, out.Bytes()); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// othersCapture has two sections in two byte orders, with microseconds, a block of an unknown kind, and a simple
// packet.
func othersCapture() (data []byte) {
	block := func(order binary.AppendByteOrder, kind uint32, body ...byte) []byte {
		length := uint32(12 + len(body))
		b := order.AppendUint32(order.AppendUint32(nil, kind), length)
		return order.AppendUint32(append(b, body...), length)
	}
	for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
		section := order.AppendUint32(nil, 0x1a2b3c4d)
		section = append(section, make([]byte, 12)...)
		data = append(data, block(order, 0x0a0d0d0a, section...)...)
		ethernet := order.AppendUint16(nil, 1)
		data = append(data, block(order, 1, append(ethernet, 0, 0, 0, 0, 0, 0)...)...)
		data = append(data, block(order, 0xbad, 1, 2, 3, 4)...)
		packet := order.AppendUint32(nil, 0)
		units := uint64(noon.UnixMicro())
		packet = order.AppendUint32(order.AppendUint32(packet, uint32(units>>32)), uint32(units))
		packet = order.AppendUint32(order.AppendUint32(packet, 2), 60)
		data = append(data, block(order, 6, append(packet, 'h', 'i', 0, 0)...)...)
		data = append(data, block(order, 3, append(order.AppendUint32(nil, 3), 'y', 'o', 'u', 0)...)...)
	}
	return data
}

func TestOthersCaptures(t *testing.T) {
	data := othersCapture()
	want := []string{`00.123456000  hi/60 ""`, `00.000000000  you/3 ""`}
	if got := packets(t, data); !slices.Equal(got, append(want, want...)) {
		t.Errorf("got is %v, want %v", got, append(want, want...))
	}
}

func TestReaderReportsACutFile(t *testing.T) {
	whole := capture(t, "a", 0, 1)
	between := map[int]bool{} // two blocks
	for at := 0; at < len(whole); between[at] = true {
		at += int(binary.LittleEndian.Uint32(whole[at+4:]))
	}
	for size := range whole {
		r := pcapng.NewReader(bytes.NewReader(whole[:size]))
		var err error
		for err == nil {
			_, err = r.Next()
		}
		var format *pcapng.FormatError
		if between[size] != errors.Is(err, io.EOF) || between[size] == errors.As(err, &format) {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
}

// A source that cannot be read is removed and ended once, and so are the sources that remain in the end.
func TestAMergerThatFails(t *testing.T) {
	done := map[string]int{}
	source := func(name string, data []byte) pcapng.Source {
		return pcapng.Source{Name: name, Reader: pcapng.NewReader(bytes.NewReader(data)), Done: func() error {
			done[name]++
			return nil
		}}
	}
	w, err := pcapng.NewWriter(io.Discard, "test")
	if err != nil {
		t.Fatal(err)
	}
	m := pcapng.NewMerger(w)
	var format *pcapng.FormatError
	switch err := m.Add(source("nonsense", []byte("nonsense"))); {
	case !errors.As(err, &format):
		t.Errorf("the error is %v, a %T, want a %T", err, err, format)
	case done["nonsense"] != 1:
		t.Errorf(`done["nonsense"] is %v, want 1`, done["nonsense"])
	}
	cut := capture(t, "cut", 0, 1)
	if err := errors.Join(m.Add(source("cut", cut[:len(cut)-1])),
		m.Add(source("left", capture(t, "left", 5)))); err != nil {
		t.Fatal(err)
	}
	switch count, err := m.WriteAll(); {
	case count != 1:
		t.Errorf("count is %v, want 1", count)
	case !errors.As(err, &format):
		t.Errorf("the error is %v, a %T, want a %T", err, err, format)
	case done["cut"] != 1:
		t.Errorf(`done["cut"] is %v, want 1`, done["cut"])
	case done["left"] != 0:
		t.Errorf(`done["left"] is %v, want 0`, done["left"])
	}
	switch err := errors.Join(m.Close(), m.Close()); {
	case err != nil:
		t.Error(err)
	case done["left"] != 1:
		t.Errorf(`done["left"] is %v, want 1`, done["left"])
	}
	if count, err := m.WriteAll(); count != 0 || err != nil {
		t.Errorf("after its end: %d packets, %v", count, err)
	}
}

// FuzzReader reads arbitrary data as a capture: a packet is part of the input, and is the same after writing and
// reading it.
func FuzzReader(f *testing.F) {
	f.Add([]byte("\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a"))
	f.Add(capture(f, "node-1/default/web", 0, 1, 2))
	f.Add(append(capture(f, "a", 1), capture(f, "b", 4)...))
	f.Add(othersCapture())
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		w, err := pcapng.NewWriter(&out, "test")
		if err != nil {
			t.Fatal(err)
		}
		r, interfaces, first := pcapng.NewReader(bytes.NewReader(data)), 0, []string{}
		for {
			p, err := r.Next()
			if err != nil {
				break
			}
			if len(p.Data) > len(data) || !bytes.Contains(data, p.Data) {
				t.Fatalf("a packet of %d bytes, which are not in the %d read", len(p.Data), len(data))
			}
			for ; interfaces <= p.Interface; interfaces++ {
				if _, err := w.AddInterface(r.Interface(interfaces)); err != nil {
					t.Fatal(err)
				}
			}
			p.Length = max(p.Length, len(p.Data)) // other writers may declare less
			if p.Time.Year() > 2200 || p.Time.Year() < 1970 {
				p.Time = time.Unix(0, 0).UTC() // a writer's nanoseconds do not reach that far
			}
			if err := w.Write(p); err != nil {
				t.Fatal(err)
			}
			first = append(first, described(p, r))
		}
		again := pcapng.NewReader(&out)
		for _, want := range first {
			p, err := again.Next()
			if err != nil {
				t.Fatalf("%s\nis written and cannot be read: %v", want, err)
			}
			if got := described(p, again); got != want {
				t.Fatalf("%s\nis, written and read again,\n%s", want, got)
			}
		}
	})
}

func described(p pcapng.Packet, r *pcapng.Reader) string {
	if p.Time.IsZero() {
		p.Time = time.Unix(0, 0)
	}
	return fmt.Sprintf("%d %d %q/%d %q %+v", p.Interface, p.Time.UnixNano(), p.Data, p.Length, p.Comment,
		r.Interface(p.Interface))
}
