package earlier_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile/earlier"
)

func TestTheMedianOfTheLastTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "times.json")
	times := earlier.At(path)
	if got := times.Of("start"); got != 0 {
		t.Errorf("an empty memory knows %s", got)
	}
	for i, step := range []struct{ took, want time.Duration }{
		{time.Hour, time.Hour}, // with downloads, perhaps
		{40 * time.Second, time.Hour},
		{42 * time.Second, 42 * time.Second},
		{time.Second, 42 * time.Second},
		{44 * time.Second, 42 * time.Second},
		{41 * time.Second, 41 * time.Second}, // the first time is forgotten
	} {
		times.Remember("start", step.took)
		if got := earlier.At(path).Of("start"); got != step.want {
			t.Errorf("after %d times: %s, want %s", i+1, got, step.want)
		}
	}
	times.Remember("install", time.Hour)
	if got := times.Of("start"); got != 41*time.Second {
		t.Errorf("another kind of work changed it to %s", got)
	}
}

func TestTheMemoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "times.json")
	times, all := earlier.At(path), map[string]time.Duration{}
	for i := range 2000 {
		all[fmt.Sprint("kind ", i)] = time.Second
	}
	for range 8 {
		times.RememberAll(all)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 150_000 {
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
		0: "", -time.Minute: "", 400 * time.Millisecond: "", 39600 * time.Millisecond: " (about 40 s left, as before)",
		25*time.Minute + 10*time.Second: " (about 25 min left, as before)",
	} {
		if got := earlier.Left(rest); got != want {
			t.Errorf("%s: %q, want %q", rest, got, want)
		}
		took := strings.Replace(strings.Replace(want, "(", "(took ", 1), "left, as ", "", 1)
		if got := earlier.Before(rest); got != took {
			t.Errorf("%s: %q, want %q", rest, got, took)
		}
	}
}

// No content of the file is more than a missing estimate.
func FuzzTimes(f *testing.F) {
	for _, text := range []string{
		"", "null", "[]", `{"x":{"recent":[40]}}`, `{"x":{"recent":[-1]}}`, `{"x":{"recent":[1e300,0]}}`, `{"x":null}`,
		`{"x":{"seconds":40}}`, `{"x":{"recent":[1,2,3,4,5,6,7]}}`,
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
		for range 5 {
			times.Remember("x", time.Minute)
		}
		if got := times.Of("x"); got != time.Minute {
			t.Errorf("%s, want 1m", got)
		}
	})
}
