package ui_test

import (
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 301222: "301.2 kB", 999_949: "999.9 kB", 999_950: "1.0 MB",
		83_553_792: "83.6 MB", 2_000_000_000: "2.0 GB", 1 << 62: "4.6 EB",
	} {
		if got := ui.Size(bytes); got != want {
			t.Errorf("Size(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 12400 * time.Microsecond: "12ms", 96 * time.Millisecond: "0.1s", 940 * time.Millisecond: "0.9s",
		59949 * time.Millisecond: "59.9s",
		59960 * time.Millisecond: "1m00s", 125 * time.Second: "2m05s",
	} {
		if got := ui.Seconds(d); got != want {
			t.Errorf("Seconds(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "-", 12 * time.Second: "12s", 61 * time.Second: "1m", 47 * time.Hour: "47h", 49 * time.Hour: "2d",
	} {
		if got := ui.Age(d); got != want {
			t.Errorf("Age(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestRateHashVersion(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{ui.Rate(50_000_000, 2*time.Second), "25.0 MB/s"},
		{ui.Rate(1, 0), "-"},
		{ui.Hash("a1b2c3d4"), "a1b2c3"},
		{ui.Hash("a1"), "a1"},
		{ui.Hash(""), "-"},
		{ui.Version("1.29.0"), "v1.29.0"},
		{ui.Version("v1.29.0"), "v1.29.0"},
		{ui.Version(""), "-"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
