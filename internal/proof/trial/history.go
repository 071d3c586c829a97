package trial

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/proof/suite"
)

const (
	// maxHistory bounds the file of durations, in bytes; maxDurations the number of specs in it.
	maxHistory, maxDurations = 16 << 20, 20_000
	// guessed is the duration of a spec if no duration is known at all.
	guessed = 20 * time.Second
)

// history has the durations of specs in earlier runs, for estimates.
type history struct {
	path  string
	known map[string]float64 // the durations in seconds, by the spec's name
}

// openHistory reads the durations of earlier runs. An unreadable file counts as empty, since its loss
// only makes estimates worse.
func openHistory(path string) history {
	h := history{path: path, known: map[string]float64{}}
	if info, err := os.Stat(path); err != nil || info.Size() > maxHistory {
		return h
	}
	if text, err := os.ReadFile(path); err == nil {
		var known map[string]float64
		if json.Unmarshal(text, &known) == nil && known != nil {
			h.known = known
		}
	}
	return h
}

func defaultHistory() string {
	cache, err := localfile.CacheFolder()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "swdt", "e2e", "durations.json")
}

// add adds the durations of a run.
func (h history) add(r suite.Report) {
	for _, result := range r.Results {
		if result.Outcome != suite.Passed && result.Outcome != suite.Failed {
			continue
		}
		if _, known := h.known[result.Name]; known || len(h.known) < maxDurations {
			h.known[result.Name] = result.Seconds
		}
	}
}

// save writes the durations. If that fails, later estimates are worse.
func (h history) save() {
	if h.path == "" || os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	if text, err := json.Marshal(h.known); err == nil {
		_ = localfile.Replace(h.path, text)
	}
}

// estimate returns how long these specs take one after the other, and whether a duration of one of them
// is known. A spec without a duration takes as long as the others on average.
func (h history) estimate(specs []suite.Spec, done map[string]bool) (time.Duration, bool) {
	sum, counted, unknown := 0.0, 0, 0
	for _, spec := range specs {
		seconds, ok := h.known[spec.Name]
		switch {
		case done[spec.Name]:
		case ok:
			sum += seconds
			counted++
		default:
			unknown++
		}
	}
	average := guessed.Seconds()
	if counted > 0 {
		average = sum / float64(counted)
	}
	return time.Duration((sum + float64(unknown)*average) * float64(time.Second)), counted > 0
}
