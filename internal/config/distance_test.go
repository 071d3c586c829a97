package config_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/config"
)

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"kubelet", "kublet", 1}, {"kubelet", "kubelte", 1}, {"kubelet", "kubectl", 3}, {"", "abc", 3}} {
		if got := config.EditDistance(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
	word := rapid.StringOf(rapid.SampledFrom([]rune("abc")))
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := config.EditDistance(a, b)
		if (d == 0) != (a == b) || d != config.EditDistance(b, a) || d > max(len(a), len(b)) {
			t.Fatalf("%q, %q: %d", a, b, d)
		}
	})
}
