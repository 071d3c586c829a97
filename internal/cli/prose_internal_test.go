package cli

import (
	"strings"
	"testing"
)

func TestProseIsFilled(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("seventeen letters ", 9))
	list := "Kinds:\n  " + strings.Repeat("x", 90)
	text := long + "\n\n" + list + "\n\nThe\nend."
	want := "seventeen letters seventeen letters seventeen letters seventeen letters\n" +
		"seventeen letters seventeen letters seventeen letters seventeen letters\nseventeen letters\n\n" + list + "\n\nThe end."
	if got := prose(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
