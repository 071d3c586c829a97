package redact_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/format/redact"
)

// TestTwice redacts each form twice, as the node and then swdt do: the second pass loses nothing around the secrets that
// the first has left.
func TestTwice(t *testing.T) {
	r, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range readCorpus(t) {
		once := r.String(f.text)
		if twice := r.String(once); f.lost(once) == "" && f.lost(twice) != "" {
			t.Errorf("%s, %s: %q is lost in\n%s", f.family, f.name, f.lost(twice), twice)
		}
	}
}
