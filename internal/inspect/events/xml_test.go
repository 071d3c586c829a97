package events

import (
	"strings"
	"testing"
)

// The time for reading is proportional to the length, however small the pieces are.
func TestAnEventInSmallPieces(t *testing.T) {
	var got int
	d := &decoder{each: func(Event) error { got++; return nil }}
	text := strings.Repeat("<Event><System><EventID>7</EventID></System></Event>", 20) + "<Event>" +
		strings.Repeat("x", 100_000) + "</Event>"
	for i := range len(text) {
		if _, err := d.Write([]byte(text[i : i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if got != 21 {
		t.Errorf("got %d events", got)
	}
}
