package earlier_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/vm/earlier"
)

func TestTheLastTimeIsRemembered(t *testing.T) {
	times := earlier.At(filepath.Join(t.TempDir(), "times.json"))
	if got := times.Of("start"); got != 0 {
		t.Errorf("an empty memory knows %s", got)
	}
	times.Remember("start", time.Minute)
	times.Remember("start", 40*time.Second)
	times.Remember("install", time.Hour)
	if got := times.Of("start"); got != 40*time.Second {
		t.Errorf("%s, want 40s", got)
	}
}

func TestTheMemoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "times.json")
	times := earlier.At(path)
	for i := range 300 {
		times.Remember(fmt.Sprint("kind ", i), time.Second)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 50_000 {
		t.Errorf("the file has %d bytes", info.Size())
	}
}

func TestSideBySide(t *testing.T) {
	times := earlier.At(filepath.Join(t.TempDir(), "times.json"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { times.Remember(fmt.Sprint(i), time.Second) })
	}
	all.Wait()
	known := 0
	for i := range 8 {
		if times.Of(fmt.Sprint(i)) == time.Second {
			known++
		}
	}
	if known == 0 {
		t.Error("the file is damaged")
	}
}

func TestAnEstimateForPeople(t *testing.T) {
	for rest, want := range map[time.Duration]string{
		0: "", -time.Minute: "", 400 * time.Millisecond: "", 39600 * time.Millisecond: " (about 40 s left, as last time)",
		25*time.Minute + 10*time.Second: " (about 25 min left, as last time)",
	} {
		if got := earlier.Left(rest); got != want {
			t.Errorf("%s: %q, want %q", rest, got, want)
		}
		took := strings.Replace(strings.Replace(want, "(", "(took ", 1), "left, as ", "", 1)
		if got := earlier.LastTime(rest); got != took {
			t.Errorf("%s: %q, want %q", rest, got, took)
		}
	}
}

// No content of the file is more than a missing estimate.
func FuzzTimes(f *testing.F) {
	for _, text := range []string{
		"", "null", "[]", `{"x":{"seconds":40}}`, `{"x":{"seconds":-1}}`, `{"x":{"seconds":1e300}}`, `{"x":null}`,
	} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "times.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		times := earlier.At(path)
		if got := times.Of("x"); got < 0 || got > 8*24*time.Hour {
			t.Errorf("%s", got)
		}
		times.Remember("x", time.Minute)
		if got := times.Of("x"); got != time.Minute {
			t.Errorf("%s, want 1m", got)
		}
	})
}
