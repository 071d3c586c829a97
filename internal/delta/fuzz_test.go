package delta_test

import (
	"bytes"
	"context"
	"io"
	"runtime/debug"
	"testing"

	"github.com/swdt-dev/swdt/internal/delta"
)

// FuzzApply applies what is no patch, or nearly one. It must come to an error or
// to the right file, without a panic and within the memory it may use.
func FuzzApply(f *testing.F) {
	old, new := executables()
	for _, v := range variants() {
		f.Add(diff(f, old, new, v))
		f.Add(diff(f, old, old, v))
		f.Add(diff(f, old, noise(5, 3000), v))
		f.Add(diff(f, old, nil, v))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
		out := &limited{room: 4 << 20}
		_, err := delta.Apply(context.Background(), bytes.NewReader(old), int64(len(old)), bytes.NewReader(patch), out)
		if err == nil && out.room == 4<<20 && len(patch) == 0 {
			t.Error("nothing was a patch")
		}
	})
}

// limited stops what makes far more than was asked for.
type limited struct{ room int }

func (l *limited) Write(p []byte) (int, error) {
	if l.room -= len(p); l.room < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}
