package delta_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/wire/delta"
)

func variants() []delta.Variant { return []delta.Variant{delta.Fast, delta.Small} }

// roundTrip makes a patch, applies it, and compares.
func roundTrip(t rapid.TB, old, new []byte, o delta.Options) ([]byte, delta.Info) {
	t.Helper()
	var patch bytes.Buffer
	made, err := delta.Diff(context.Background(), old, new, &patch, o)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case made.PatchSize != int64(patch.Len()):
		t.Fatalf("made.PatchSize is %v, want %v", made.PatchSize, int64(patch.Len()))
	case made.NewSHA256 != sha256.Sum256(new):
		t.Fatalf("made.NewSHA256 is %v, want %v", made.NewSHA256, sha256.Sum256(new))
	case made.OldSHA256 != sha256.Sum256(old):
		t.Fatalf("made.OldSHA256 is %v, want %v", made.OldSHA256, sha256.Sum256(old))
	}
	got, applied, err := apply(old, patch.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, new) {
		t.Fatal("the patch makes something else")
	}
	if applied != made {
		t.Fatalf("made %+v but applied %+v", made, applied)
	}
	return patch.Bytes(), made
}

func apply(old, patch []byte) ([]byte, delta.Info, error) {
	var out bytes.Buffer
	info, err := delta.Apply(context.Background(), bytes.NewReader(old), int64(len(old)), bytes.NewReader(patch), &out)
	return out.Bytes(), info, err
}

// noise returns n bytes without repetition.
func noise(seed uint64, n int) []byte {
	var key [32]byte
	key[0], key[1], key[2] = byte(seed), byte(seed>>8), byte(seed>>16)
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func TestRoundTripOfEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := noise(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 200_000).Draw(t, "size"))
		if rapid.Bool().Draw(t, "few values") {
			for i := range old {
				old[i] &= 3
			}
		}
		new := bytes.Clone(old)
		for range rapid.IntRange(0, 12).Draw(t, "edits") {
			new = edit(t, new)
		}
		o := delta.Options{
			Variant: rapid.SampledFrom(variants()).Draw(t, "variant"),
			Workers: rapid.IntRange(1, 4).Draw(t, "workers"),
		}
		roundTrip(t, old, new, o)
	})
}

func edit(t *rapid.T, b []byte) []byte {
	at := rapid.IntRange(0, len(b)).Draw(t, "at")
	n := rapid.IntRange(0, min(len(b)-at, 20_000)).Draw(t, "n")
	part := bytes.Clone(b[at : at+n])
	head, tail := b[:at:at], b[at+n:]
	switch rapid.SampledFrom([]string{"insert", "delete", "move", "duplicate", "truncate", "change",
		"shift values"}).Draw(t, "edit") {
	case "insert":
		return append(append(head, noise(rapid.Uint64().Draw(t, "what"), n)...), b[at:]...)
	case "delete":
		return append(head, tail...)
	case "move":
		rest := append(head, tail...)
		to := rapid.IntRange(0, len(rest)).Draw(t, "to")
		return append(append(rest[:to:to], part...), rest[to:]...)
	case "duplicate":
		return append(append(head, part...), b[at:]...)
	case "truncate":
		return head
	case "change":
		for i := 0; i < n; i += 1 + i%97 {
			b[at+i]++
		}
	case "shift values":
		for i := 0; i < n; i += 8 {
			b[at+i] += 16
		}
	}
	return b
}

func TestSpecialFiles(t *testing.T) {
	big := noise(1, 3<<20)
	for name, pair := range map[string][2][]byte{
		"both empty":       {nil, nil},
		"old empty":        {nil, []byte("abc")},
		"new empty":        {[]byte("abc"), nil},
		"one byte":         {[]byte("a"), []byte("b")},
		"shorter than 16":  {[]byte("0123456789"), []byte("01234567890")},
		"identical":        {big, big},
		"unrelated":        {big, noise(2, 3<<20)},
		"cut at the front": {big, big[1_000_001:]},
		"cut at the end":   {big, big[:2_000_003]},
		"twice":            {big, append(bytes.Clone(big), big...)},
		"zeros":            {make([]byte, 1<<20), make([]byte, 2<<20)},
		"halves swapped":   {big, append(bytes.Clone(big[1<<20:]), big[:1<<20]...)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range variants() {
				patch, _ := roundTrip(t, pair[0], pair[1], delta.Options{Variant: v, Workers: 2})
				switch name {
				case "identical", "cut at the front", "cut at the end", "twice", "zeros", "halves swapped":
					if len(patch) > 600 {
						t.Errorf("the patch has %d bytes", len(patch))
					}
				case "unrelated":
					if limit := len(pair[1]) + len(pair[1])/100; len(patch) > limit {
						t.Errorf("the patch has %d bytes", len(patch))
					}
				}
			}
		})
	}
}

func TestThePatchDoesNotDependOnTheWorkers(t *testing.T) {
	old := noise(3, 5<<20)
	new := bytes.Clone(old)
	for i := 0; i < len(new); i += 1 + i%1777 {
		new[i]++
	}
	new = append(new[:1<<20:1<<20], new[1<<20+12345:]...)
	for _, v := range variants() {
		one, _ := roundTrip(t, old, new, delta.Options{Variant: v, Workers: 1})
		for _, workers := range []int{2, 3, 8} {
			several, _ := roundTrip(t, old, new, delta.Options{Variant: v, Workers: workers})
			if !bytes.Equal(one, several) {
				t.Errorf("%v: another patch with %d workers", v, workers)
			}
		}
	}
}
