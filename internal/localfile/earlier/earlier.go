// Package earlier stores how long work took on your machine, such as a stage of an installation,
// the start of a VM, or a stage of `swdt up`. From these times, the next command estimates how long
// the same work will take. The estimate is the median of the last successes, so one odd run does
// not change it.
//
// The times are in one file, which several swdt may read and write at the same time. They are only
// for estimates: a file that is missing or damaged counts as empty, and if two commands end at the
// same moment, one of their times may be lost. The file is in a folder of the user. Whoever can
// write to the file nevertheless changes only the printed estimates.
package earlier

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

const (
	// maxFile is far above the size of a full file, in bytes.
	maxFile = 1 << 20
	// maxKinds bounds the kinds of work in the file; if there are more, the oldest are deleted.
	maxKinds = 500
	// kept is the maximum number of durations that are stored for each kind of work.
	kept = 5
	// longest is the longest time that is plausible; a longer one counts as unknown.
	longest = 7 * 24 * time.Hour
)

// Times stores times in a file. The zero Times has no file: it knows no time and stores none.
type Times struct{ path string }

// At returns the Times with the file at path. The file may be missing.
func At(path string) Times { return Times{path} }

// work has the times of one kind of work.
type work struct {
	// Recent are the times of the last successes in seconds, the oldest first.
	Recent []float64 `json:"recent"`
	Ended  time.Time `json:"ended"` // when the last success ended
}

// Of returns the median of the times that a kind of work took; 0 if no time is known. If the number
// of times is even, Of returns the greater of the two times in the middle, since work that ends
// early disappoints less.
func (t Times) Of(kind string) time.Duration { return t.read()[kind].median() }

func (w work) median() time.Duration {
	recent := w.plausible()
	if len(recent) == 0 {
		return 0
	}
	slices.Sort(recent)
	return time.Duration(recent[len(recent)/2] * float64(time.Second))
}

// plausible returns a copy of the last plausible times, at most as many as the constant kept.
func (w work) plausible() []float64 {
	odd := func(seconds float64) bool { return !(seconds > 0 && seconds < longest.Seconds()) } // also NaN
	recent := slices.DeleteFunc(slices.Clone(w.Recent), odd)
	return recent[max(0, len(recent)-kept):]
}

// Remember adds the time that a kind of work took. If the file cannot be written, the next command
// estimates without this time.
func (t Times) Remember(kind string, took time.Duration) {
	t.RememberAll(map[string]time.Duration{kind: took})
}

// RememberAll adds the times of several kinds of work, as Remember does.
func (t Times) RememberAll(took map[string]time.Duration) {
	if t.path == "" || len(took) == 0 {
		return
	}
	all := t.read()
	for kind, took := range took {
		recent := work{Recent: append(all[kind].plausible(), took.Seconds())}.plausible()
		all[kind] = work{Recent: recent, Ended: time.Now().UTC().Truncate(time.Second)}
	}
	for len(all) > maxKinds {
		delete(all, oldest(all))
	}
	if text, err := json.MarshalIndent(all, "", "  "); err == nil {
		_ = localfile.Replace(t.path, append(text, '\n'))
	}
}

// oldest returns the kind of work whose last success ended first.
func oldest(all map[string]work) (oldest string) {
	first := true
	for kind, w := range all {
		if first || w.Ended.Before(all[oldest].Ended) {
			oldest, first = kind, false
		}
	}
	return oldest
}

// read returns the content of the file, which is empty if the file cannot be used.
func (t Times) read() map[string]work {
	all := map[string]work{}
	// Opening a named pipe would wait for another process.
	if info, err := os.Stat(t.path); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return all
	}
	file, err := os.Open(t.path)
	if err != nil {
		return all
	}
	defer file.Close()
	if json.NewDecoder(io.LimitReader(file, maxFile)).Decode(&all) != nil || all == nil {
		return map[string]work{}
	}
	return all
}

// Before returns a text to print after the name of some work, such as " (took about 40 s before)".
// It returns "" if the work took less than half a second, for example because no time is known.
func Before(took time.Duration) string {
	if about := About(took); about != "" {
		return " (took " + about + " before)"
	}
	return ""
}

// Left returns a text to print after the name of a step, such as " (about 40 s left, as before)".
// It returns "" if less than half a second is left, for example because no time is known or the
// step takes longer than before.
func Left(rest time.Duration) string {
	if about := About(rest); about != "" {
		return " (" + about + " left, as before)"
	}
	return ""
}

// About returns a rough time for people, such as "about 40 s"; "" for less than half a second.
func About(d time.Duration) string {
	switch {
	case d < time.Second/2:
		return ""
	case d < 2*time.Minute:
		return fmt.Sprintf("about %d s", int(d.Round(time.Second).Seconds()))
	}
	return fmt.Sprintf("about %d min", int(d.Round(time.Minute).Minutes()))
}
