package cases_test

import (
	"slices"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/cases"
)

func TestOf(t *testing.T) {
	t.Setenv("SWDT_EVERY_POINT", "")
	var every []int
	for i := range 1000 {
		every = append(every, i)
	}
	with := func(seed string) []int {
		t.Setenv("SWDT_SEED", seed)
		some := cases.Of(t, every, 20)
		if len(slices.Compact(slices.Clone(some))) != 20 || !slices.IsSorted(some) {
			t.Errorf("seed %q chooses %v", seed, some)
		}
		return some
	}
	first := with("")
	for range 2 {
		if !slices.Equal(first, with("1")) {
			t.Error("the same seed chooses other cases")
		}
	}
	if slices.Equal(first, with("2")) {
		t.Error("another seed chooses the same cases")
	}
	t.Run("another test", func(t *testing.T) {
		if slices.Equal(with("2"), cases.Of(t, every, 20)) {
			t.Error("each test has the same sample")
		}
	})
	if few := cases.Of(t, every[:20], 20); !slices.Equal(few, every[:20]) {
		t.Errorf("of few cases it chooses %v", few)
	}
	t.Setenv("SWDT_EVERY_POINT", "1")
	if all := cases.Of(t, every, 20); !slices.Equal(all, every) {
		t.Errorf("%d cases instead of all", len(all))
	}
}
