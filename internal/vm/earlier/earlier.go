// Package earlier stores how long work on VMs took on your machine: each stage of an installation,
// and the time from a VM's start to the answer of its guest's SSH server. From these times, the
// next command estimates how long the same work will take.
//
// The times are in one file, which several swdt may read and write at the same time. They are only
// for estimates: a file that is missing or damaged counts as empty, and if two commands end at the
// same moment, one of their times may be lost.
package earlier

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

const (
	// maxFile is far above the size of a full file, in bytes.
	maxFile = 1 << 20
	// maxKinds bounds the kinds of work in the file; if there are more, the oldest are deleted.
	maxKinds = 200
	// longest is the longest time that is plausible; a longer one counts as unknown.
	longest = 7 * 24 * time.Hour
)

// Times stores times in a file. The zero Times has no file: it knows no time and stores none.
type Times struct{ path string }

// At returns the Times with the file at path. The file may be missing.
func At(path string) Times { return Times{path} }

// work is how long a kind of work took the last time, and when it ended.
type work struct {
	Seconds float64   `json:"seconds"`
	Ended   time.Time `json:"ended"`
}

// Of returns how long a kind of work took the last time; 0 if that is not known.
func (t Times) Of(kind string) time.Duration {
	return t.read()[kind].took()
}

func (w work) took() time.Duration {
	if !(w.Seconds > 0 && w.Seconds < longest.Seconds()) { // also refuses NaN
		return 0
	}
	return time.Duration(w.Seconds * float64(time.Second))
}

// Remember stores how long a kind of work took. If the file cannot be written, the next command
// estimates without this time.
func (t Times) Remember(kind string, took time.Duration) {
	if t.path == "" {
		return
	}
	all := t.read()
	all[kind] = work{Seconds: took.Seconds(), Ended: time.Now().UTC().Truncate(time.Second)}
	for len(all) > maxKinds {
		delete(all, oldest(all))
	}
	if text, err := json.MarshalIndent(all, "", "  "); err == nil {
		_ = localfile.Replace(t.path, append(text, '\n'))
	}
}

// oldest returns the kind of work whose last time ended first.
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

// LastTime returns a text for people, which follows the name of some work: " (took about 40 s last
// time)". It is empty if took is less than half a second, for example because no time is known.
func LastTime(took time.Duration) string {
	if about := about(took); about != "" {
		return " (took " + about + " last time)"
	}
	return ""
}

// Left returns a text for people, which follows the name of a step: " (about 40 s left, as last
// time)". It is empty if rest is less than half a second, for example because no time is known or
// the step takes longer than last time.
func Left(rest time.Duration) string {
	if about := about(rest); about != "" {
		return " (" + about + " left, as last time)"
	}
	return ""
}

func about(d time.Duration) string {
	switch {
	case d < time.Second/2:
		return ""
	case d < 2*time.Minute:
		return fmt.Sprintf("about %d s", int(d.Round(time.Second).Seconds()))
	}
	return fmt.Sprintf("about %d min", int(d.Round(time.Minute).Minutes()))
}
