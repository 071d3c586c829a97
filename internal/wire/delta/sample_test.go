package delta

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func noise(size int, seed byte) []byte {
	out := make([]byte, size)
	rand.NewChaCha8([32]byte{seed}).Read(out)
	return out
}

// A sample must not classify files as unrelated if a patch is worthwhile.
func TestResemblance(t *testing.T) {
	old := noise(16<<20, 1)
	unrelated := noise(16<<20, 2)
	relinked := slices.Clone(old) // one word in twenty-four bytes is another
	for at := 0; at+24 <= len(relinked); at += 24 {
		copy(relinked[at:], unrelated[at:at+4])
	}
	moved := append(noise(4099, 3), old...)
	eighth := slices.Clone(unrelated)
	copy(eighth[5<<20:], old[7<<20:][:2<<20])
	scattered := slices.Clone(unrelated) // an eighth, in pieces of 16 kB
	for at := 0; at < len(scattered); at += 128 << 10 {
		copy(scattered[at+777:], old[at+333:][:16<<10])
	}
	for name, c := range map[string]struct {
		new  []byte
		want bool
	}{
		"the same": {old, true}, "relinked": {relinked, true}, "moved": {moved, true},
		"an eighth": {eighth, true}, "a scattered eighth": {scattered, true},
		"unrelated": {unrelated, false}, "zeros": {make([]byte, 16<<20), false},
		"of a small file": {unrelated[:smallestSample-1], true},
	} {
		if got := resemble(t.Context(), old, c.new); got != c.want {
			t.Errorf("%s: got is %v, want %v", name, got, c.want)
		}
	}
}
