package ui_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
)

func TestWords(t *testing.T) {
	for state, want := range map[string]string{"rolledBack": "rolled back", "running": "running",
		"": "", "startPending": "start pending"} {
		if got := ui.Words(state); got != want {
			t.Errorf("%q is written %q, want %q", state, got, want)
		}
	}
}
