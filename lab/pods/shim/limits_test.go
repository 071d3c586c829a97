package main

import (
	"encoding/json"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	for text, want := range map[string]limits{
		`{}`: {},
		`{"cpu": {"maximum": 1000}, "memory": {"limit": 268435456}}`: {0.2, 256 << 20},
		`{"cpu": {"maximum": 10000}}`:                                {2, 0},
		`{"cpu": {"shares": 500}}`:                                   {},
	} {
		var r resources
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if got := r.limits(2); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// A container that always wants two processors gets its share of them over time, also after an idle minute.
func TestBudget(t *testing.T) {
	const tick, ticks = 20 * time.Millisecond, 500
	b := budget{cores: 0.2}
	if b.spend(0, time.Minute) {
		t.Error("an idle container must pause")
	}
	used, pause := time.Duration(0), false
	for range ticks {
		now := 2 * tick
		if pause {
			now = 0
		}
		used += now
		pause = b.spend(now, tick)
	}
	if share := used.Seconds() / (ticks * tick.Seconds()); share < 0.19 || share > 0.21 {
		t.Errorf("it got %.3f processors", share)
	}
}
