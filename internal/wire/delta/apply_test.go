package delta_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/delta"
)

// pair is an old file and a new one that resembles it.
func pair(size int) (old, new []byte) {
	old = noise(7, size)
	new = bytes.Clone(old)
	for i := 0; i < len(new); i += 1 + i%501 {
		new[i]++
	}
	return old, append(new[:size/2:size/2], new[size/2+size/16:]...)
}

func diff(t testing.TB, old, new []byte, v delta.Variant) []byte {
	t.Helper()
	var patch bytes.Buffer
	if _, err := delta.Diff(context.Background(), old, new, &patch, delta.Options{Variant: v, Workers: 2}); err != nil {
		t.Fatal(err)
	}
	return patch.Bytes()
}

// TestEveryDamageIsFound accepts damage without effect, since zstd ignores some
// bits.
func TestEveryDamageIsFound(t *testing.T) {
	old, new := pair(20_000)
	patch := diff(t, old, new, delta.Small)
	for at := range patch {
		for _, flip := range []byte{1, 0x80} {
			damaged := bytes.Clone(patch)
			damaged[at] ^= flip
			// The caller that applies the patch compares the hash of the old
			// file.
			if at >= 26 && at < 58 {
				continue
			}
			got, _, err := apply(old, damaged)
			if blames(err) == nil && (err != nil || !bytes.Equal(got, new)) {
				t.Fatalf("byte %d changed by %#x: %v", at, flip, err)
			}
		}
		if _, _, err := apply(old, patch[:at]); blames(err) == nil {
			t.Fatalf("cut after %d bytes: %v", at, err)
		}
	}
	for _, extra := range []string{"\x00", "something", string(patch)} {
		if _, _, err := apply(old, append(bytes.Clone(patch), extra...)); blames(err) == nil {
			t.Errorf("%d bytes too many: %v", len(extra), err)
		}
	}
}

// blames returns the *CorruptError in err, or nil.
func blames(err error) *delta.CorruptError {
	var corrupt *delta.CorruptError
	errors.As(err, &corrupt)
	return corrupt
}

// A patch with corrections after the last block makes the right file, and is refused nevertheless.
func TestCorrectionsBeyondTheEndAreFound(t *testing.T) {
	old, new := executables()
	patch := diff(t, old, new, delta.Small)
	for name, stream := range map[string]int{"bytes": 3, "words": 6, "operands": 8} {
		p := takeApart(t, patch)
		width := 4
		if name == "bytes" {
			width = 1
		}
		p.streams[stream] = binary.AppendUvarint(p.streams[stream], 1<<30)
		p.streams[stream+1] = append(p.streams[stream+1], make([]byte, width)...)
		if got, _, err := apply(old, p.assemble()); blames(err) == nil || !bytes.Equal(got, new) {
			t.Errorf("%s: %v; the file is right: %t", name, err, bytes.Equal(got, new))
		}
	}
}

// Streams that together exceed the new file by more than 1 MiB are refused before any of them is read.
func TestTheSumOfTheStreamsIsLimited(t *testing.T) {
	old, new := executables()
	head := diff(t, old, new, delta.Small)[:headSize]
	limit := uint64(len(new) + 1<<20)
	for _, extra := range []uint64{0, 1} {
		table := bytes.Clone(head)
		for i := range uint64(10) {
			size := limit / 10
			if i == 9 {
				size = limit - 9*size + extra
			}
			table = binary.AppendUvarint(table, size)
		}
		zeros := &io.LimitedReader{R: endless{}, N: 1 << 30}
		_, err := delta.Apply(context.Background(), bytes.NewReader(old), int64(len(old)),
			io.MultiReader(bytes.NewReader(table), zeros), io.Discard)
		if got := 1<<30 - zeros.N; blames(err) == nil || (got > 0) != (extra == 0) {
			t.Errorf("%d bytes over the limit: %d bytes of the streams were read: %v", extra, got, err)
		}
	}
}

// endless is a file of zeros.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestAnotherOldFileIsFound(t *testing.T) {
	old, new := pair(100_000)
	patch := diff(t, old, new, delta.Fast)
	other := bytes.Clone(old)
	other[1000] ^= 1
	for _, wrong := range [][]byte{other, old[1:], nil} {
		if _, _, err := apply(wrong, patch); blames(err) == nil {
			t.Errorf("applied to another file of %d bytes: %v", len(wrong), err)
		}
	}
}

func TestTheHeaderTellsWhatIsNeeded(t *testing.T) {
	old, new := pair(100_000)
	var patch bytes.Buffer
	info, err := delta.Diff(context.Background(), old, new, &patch, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := delta.ReadHeader(&patch)
	if err != nil {
		t.Fatal(err)
	}
	want := delta.Header{Variant: delta.Fast, OldSize: info.OldSize, NewSize: info.NewSize,
		OldSHA256: info.OldSHA256, NewSHA256: info.NewSHA256}
	if h != want {
		t.Errorf("got %+v, not %+v", h, want)
	}
}

func TestHashesThatAreKnownAreTaken(t *testing.T) {
	old, new := pair(10_000)
	known := [32]byte{1, 2, 3}
	info, err := delta.Diff(context.Background(), old, new, io.Discard,
		delta.Options{OldSHA256: &known, NewSHA256: &known})
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case info.OldSHA256 != known:
		t.Errorf("info.OldSHA256 is %v, want %v", info.OldSHA256, known)
	case info.NewSHA256 != known:
		t.Errorf("info.NewSHA256 is %v, want %v", info.NewSHA256, known)
	}
}

func TestBrokenFilesAreNotThePatchsFault(t *testing.T) {
	old, new := pair(1 << 20)
	patch := diff(t, old, new, delta.Fast)
	broken := errors.New("broken")
	for name, run := range map[string]func() error{
		"old": func() error {
			_, err := delta.Apply(context.Background(), brokenFile{broken}, int64(len(old)),
				bytes.NewReader(patch), io.Discard)
			return err
		},
		"header": func() error {
			_, err := delta.Apply(context.Background(), bytes.NewReader(old), int64(len(old)),
				brokenFile{broken}, io.Discard)
			return err
		},
		"streams": func() error {
			r := io.MultiReader(bytes.NewReader(patch[:len(patch)/2]), brokenFile{broken})
			_, err := delta.Apply(context.Background(), bytes.NewReader(old), int64(len(old)), r, io.Discard)
			return err
		},
		"literals": func() error {
			patch := diff(t, old, noise(99, 1<<20), delta.Fast)
			r := io.MultiReader(bytes.NewReader(patch[:len(patch)/2]), brokenFile{broken})
			_, err := delta.Apply(context.Background(), bytes.NewReader(old), int64(len(old)), r, io.Discard)
			return err
		},
		"output": func() error {
			_, err := delta.Apply(context.Background(), bytes.NewReader(old), int64(len(old)), bytes.NewReader(patch),
				brokenFile{broken})
			return err
		},
		"output of Diff": func() error {
			_, err := delta.Diff(context.Background(), old, new, brokenFile{broken}, delta.Options{})
			return err
		},
	} {
		switch err := run(); {
		case !errors.Is(err, broken):
			t.Errorf("%s: the error is %v, want %v", name, err, broken)
		case blames(err) != nil:
			t.Errorf("%s: blames(err) is %v, want nil", name, blames(err))
		}
	}
}

type brokenFile struct{ err error }

func (f brokenFile) ReadAt([]byte, int64) (int, error) { return 0, f.err }
func (f brokenFile) Read([]byte) (int, error)          { return 0, f.err }
func (f brokenFile) Write([]byte) (int, error)         { return 0, f.err }

func TestCancelling(t *testing.T) {
	old, new := pair(4 << 20)
	patch := diff(t, old, new, delta.Small)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := delta.Diff(ctx, old, new, io.Discard, delta.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Diff: %v", err)
	}
	if _, err := delta.Apply(ctx, bytes.NewReader(old), int64(len(old)), bytes.NewReader(patch),
		io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Apply: %v", err)
	}
}

// TestMemory compares the total of all allocations, which is more than is ever
// in use at once, with the limit that the package promises.
func TestMemory(t *testing.T) {
	const mb = 1 << 20
	old, new := pair(32 * mb)
	for _, v := range variants() {
		var patch []byte
		if used := allocated(func() { patch = diff(t, old, new, v) }); used > 2*int64(len(old))+64*mb {
			t.Errorf("Diff %v allocates %d MiB", v, used/mb)
		}
		used := allocated(func() {
			if _, err := delta.Apply(context.Background(), bytes.NewReader(old), int64(len(old)),
				bytes.NewReader(patch), io.Discard); err != nil {
				t.Error(err)
			}
		})
		if used > 64*mb {
			t.Errorf("Apply %v allocates %d MiB", v, used/mb)
		}
	}
}

func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}
