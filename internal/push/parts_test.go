package push

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The parts do not overlap: their sum is the time of the work. A name that comes again adds to its part.
func TestPartsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parts{}
		begun := time.Now()
		for _, name := range []string{partStop, partSwap, "", partStop, partStop, partCheck} {
			p.begin(name)
			time.Sleep(time.Second)
		}
		p.end()
		p.end()
		sum := 0.0
		for _, part := range p.all {
			sum += part.Seconds
		}
		if sum != time.Since(begun).Seconds() {
			t.Errorf("the sum is %v, and %v have passed", sum, time.Since(begun))
		}
		if got := p.String(); got != "stop 3.0s, swap 2.0s, check 1.0s" {
			t.Errorf("got %q", got)
		}
	})
}

// A push lists its parts in the order in which they happen.
func TestAPushListsItsParts(t *testing.T) {
	b := twoPrograms(t)
	result, err := b.push(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, part := range result.Parts {
		names = append(names, part.Name)
	}
	want := []string{partInspect, partStage, partBegin, partStop, partStart, partEnd}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}
