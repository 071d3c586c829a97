package delta_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/swdt-dev/swdt/internal/wire/delta"
)

// FuzzApply applies invalid and nearly valid patches.
func FuzzApply(f *testing.F) {
	old, new := executables()
	for _, v := range variants() {
		f.Add(diff(f, old, new, v))
		f.Add(diff(f, old, old, v))
		f.Add(diff(f, old, noise(5, 3000), v))
		f.Add(diff(f, old, nil, v))
	}
	f.Fuzz(func(t *testing.T, patch []byte) { applyAnything(t, old, patch) })
}

// FuzzStreams applies patches with arbitrary streams. A fuzzer that mutates
// compressed streams hardly ever gets past the decompression.
func FuzzStreams(f *testing.F) {
	old, new := executables()
	for _, v := range variants() {
		patch := takeApart(f, diff(f, old, new, v))
		s := patch.streams
		f.Add(patch.head, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], patch.literals)
	}
	f.Fuzz(func(t *testing.T, head, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, literals []byte) {
		p := parts{head: head, streams: [10][]byte{s0, s1, s2, s3, s4, s5, s6, s7, s8, s9}, literals: literals}
		applyAnything(t, old, p.assemble())
	})
}

// applyAnything expects an error or the right file: never a panic, and never
// more output than the header declares.
func applyAnything(t *testing.T, old, patch []byte) {
	out := &limited{room: 4 << 20}
	if h, err := delta.ReadHeader(bytes.NewReader(patch)); err == nil {
		out.room = min(out.room, int(h.NewSize))
	}
	_, err := delta.Apply(context.Background(), bytes.NewReader(old), int64(len(old)), bytes.NewReader(patch), out)
	if out.exceeded && out.room < 4<<20 {
		t.Errorf("more is written than the header says (%v)", err)
	}
	if err != nil && strings.Count(err.Error(), "patch:") > 1 {
		t.Errorf("it says twice what is wrong: %v", err)
	}
}

// limited fails writes beyond the expected size.
type limited struct {
	room, written int
	exceeded      bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.written += len(p); l.written > l.room {
		l.exceeded = true
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// parts are a patch with its streams decompressed. They follow
// docs/patch-format.md and do not use the package's code.
type parts struct {
	head     []byte
	streams  [10][]byte
	literals []byte
}

const headSize = 90

func takeApart(t testing.TB, patch []byte) parts {
	t.Helper()
	p := parts{head: patch[:headSize]}
	rest := patch[headSize:]
	var sizes [10]uint64
	for i := range sizes {
		size, n := binary.Uvarint(rest)
		sizes[i], rest = size, rest[n:]
	}
	for i, size := range sizes {
		p.streams[i], rest = decompress(t, rest[:size]), rest[size:]
	}
	p.literals = decompress(t, rest)
	return p
}

func (p parts) assemble() []byte {
	patch := bytes.Clone(p.head)
	var streams []byte
	for _, raw := range p.streams {
		compressed := compress(raw)
		patch = binary.AppendUvarint(patch, uint64(len(compressed)))
		streams = append(streams, compressed...)
	}
	return append(append(patch, streams...), compress(p.literals)...)
}

// compress writes a frame of raw blocks, which costs a fuzzer no time.
func compress(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x58} // magic, no content size, a window of 2 MiB
	for len(raw) > 0 {
		n, last := min(len(raw), 64<<10), 0
		if n == len(raw) {
			last = 1
		}
		head := n<<3 | last
		frame = append(frame, byte(head), byte(head>>8), byte(head>>16))
		frame, raw = append(frame, raw[:n]...), raw[n:]
	}
	return frame
}

func decompress(t testing.TB, frame []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	raw, err := d.DecodeAll(frame, nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAPatchTakenApartAndAssembledIsThePatch(t *testing.T) {
	old, new := executables()
	for _, v := range variants() {
		got, _, err := apply(old, takeApart(t, diff(t, old, new, v)).assemble())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, new) {
			t.Error("it makes another file")
		}
	}
}
