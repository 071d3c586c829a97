package delta_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/delta"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGoldenPatches applies stored patches, and compares them with newly made
// ones. If the bytes differ and the patch still applies, the matcher has
// changed: check the change and update. If a patch does not apply, the format
// has changed: give it another version.
func TestGoldenPatches(t *testing.T) {
	old, new := executables()
	for name, c := range map[string]struct {
		old, new []byte
		variant  delta.Variant
	}{
		"fast":  {old, new, delta.Fast},
		"small": {old, new, delta.Small},
		"whole": {old, noise(5, 300), delta.Fast},
		"empty": {old, nil, delta.Fast},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".patch")
			made := diff(t, c.old, c.new, c.variant)
			if *update {
				if err := os.WriteFile(file, made, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := apply(c.old, golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, c.new) {
				t.Error("the golden patch makes something else")
			}
			if name == "whole" || name == "empty" {
				return
			}
			// The compressor may change, its input may not.
			want, have := takeApart(t, golden), takeApart(t, made)
			for i := range want.streams {
				if !bytes.Equal(want.streams[i], have.streams[i]) {
					t.Errorf("stream %d is\n%x and was\n%x", i, have.streams[i], want.streams[i])
				}
			}
			if !bytes.Equal(want.literals, have.literals) || !bytes.Equal(want.head, have.head) {
				t.Errorf("the head or the literals changed")
			}
		})
	}
}
