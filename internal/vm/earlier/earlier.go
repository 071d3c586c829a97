// Package earlier remembers how long work on VMs took on your machine, so that the next command can
// estimate how long it will take: each stage of an installation, and from a start to the answer
// of the guest's SSH server.
//
// The memory is one file, which other swdt may read and write at the same time. It is only for
// estimates: a file that is missing or damaged is an empty memory, and two commands that end at the
// same moment may lose one of their times.
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
	// maxFile is far more than a full memory has, in bytes.
	maxFile = 1 << 20
	// maxKinds is how many kinds of work are remembered; the oldest are forgotten.
	maxKinds = 200
	// longest bounds a time that is believed.
	longest = 7 * 24 * time.Hour
)

// Times is a memory. The zero Times knows nothing and keeps nothing.
type Times struct{ path string }

// At returns the memory that a file has. The file may be missing.
func At(path string) Times { return Times{path} }

// work is the last time that a kind of work was done.
type work struct {
	Seconds float64   `json:"seconds"`
	Ended   time.Time `json:"ended"`
}

// Of returns how long a kind of work took the last time; 0: it is not known.
func (t Times) Of(kind string) time.Duration {
	return t.read()[kind].took()
}

func (w work) took() time.Duration {
	if !(w.Seconds > 0 && w.Seconds < longest.Seconds()) { // also if it is no number
		return 0
	}
	return time.Duration(w.Seconds * float64(time.Second))
}

// Remember stores how long a kind of work took. If it cannot, the next command has no estimate.
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

// oldest returns the kind of work that was done the longest time ago.
func oldest(all map[string]work) (oldest string) {
	first := true
	for kind, w := range all {
		if first || w.Ended.Before(all[oldest].Ended) {
			oldest, first = kind, false
		}
	}
	return oldest
}

// read returns the memory, which is empty if the file cannot be used.
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

// LastTime returns how long work took the last time, for people, which follows the name of the work:
// " (took about 40 s last time)". It is empty if the time is not known.
func LastTime(took time.Duration) string {
	if about := about(took); about != "" {
		return " (took " + about + " last time)"
	}
	return ""
}

// Left returns an estimate for people, which follows the name of a step: " (about 40 s left, as last
// time)". It is empty if the estimate is not known, or is over.
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
