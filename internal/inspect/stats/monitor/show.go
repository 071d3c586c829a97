package monitor

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
	"github.com/swdt-dev/swdt/internal/inspect/stats/soak"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Show prints, records and checks the readings of a watch.
type Show struct {
	Printer  Printer
	Recorder *record.Writer // receives all readings; nil: nothing is recorded
	Check    *Check
	// FirstFinding reports whether the watch ends after the check's first finding.
	FirstFinding bool
	// Soak collects numbers that grow; nil: they are not wanted.
	Soak *soak.Series
	Warn func(string)

	follower *stats.Follower
	tally    *stats.Tally
	failing  map[string]bool // by node and source
}

// Begin prepares for readings. tolerance is the relative difference that reported and
// computed rates may have, such as 0.2.
func (w *Show) Begin(tolerance float64) {
	w.follower, w.tally, w.failing = stats.NewFollower(tolerance), stats.NewTally(), map[string]bool{}
}

// Node implements Observer.
func (w *Show) Node(facts record.NodeFacts) error {
	if facts.Note != "" {
		w.Warn(facts.Name + ": " + facts.Note)
	}
	if w.Recorder == nil {
		return nil
	}
	return w.Recorder.AddNode(facts)
}

// Reading implements Observer.
func (w *Show) Reading(r stats.Reading) error {
	if w.Recorder != nil {
		if err := w.Recorder.Add(r); err != nil {
			return err
		}
	}
	w.complain(r)
	if w.Soak != nil {
		w.Soak.AddReading(r)
	}
	rows := w.follower.Add(r)
	w.tally.Add(r, rows)
	w.Check.add(r, rows)
	if err := w.Printer.rows(r, rows); err != nil {
		return err
	}
	if w.FirstFinding && w.Check.any() {
		return ErrEnough
	}
	return nil
}

// Levels implements Observer.
func (w *Show) Levels(l stats.Levels) error {
	if w.Soak != nil {
		w.Soak.AddLevels(l)
	}
	if w.Recorder == nil {
		return nil
	}
	return w.Recorder.AddLevels(l)
}

// complain prints a warning for a source that fails, once each time the source begins to
// fail. It ignores the additional callers, which get the same errors as the first one.
func (w *Show) complain(r stats.Reading) {
	if r.Caller != 0 {
		return
	}
	of := r.Node + ": " + string(r.Source)
	if failing := r.Err != ""; failing != w.failing[of] {
		w.failing[of] = failing
		if failing {
			w.Warn(fmt.Sprintf("warning: %s does not answer: %s", of, r.Err))
		}
	}
}

// End finishes the output and the recording, and writes a summary if one is wanted.
func (w *Show) End(out io.Writer, summary bool) error {
	err := w.Printer.end()
	if w.Recorder != nil {
		err = errors.Join(err, w.Recorder.Close())
	}
	if summary {
		err = errors.Join(err, writeSummaries(out, w.tally.Summaries()))
	}
	return err
}

func writeSummaries(out io.Writer, summaries []stats.SourceSummary) error {
	var rows [][]string
	for _, s := range summaries {
		rows = append(rows, []string{
			string(s.Source), fmt.Sprint(s.Containers), fmt.Sprint(s.Calls), fmt.Sprint(s.Samples),
			stats.Counts(s.Verdicts, "%d"),
			ratio(s.Ratio), latency(s.LatencySeconds.Median), latency(s.LatencySeconds.P95),
		})
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return ui.Table(out, []string{"SOURCE", "CONTAINERS", "ANSWERS", "SAMPLES", "VERDICTS", "REPORTED/COMPUTED",
		"LATENCY", "95 %"}, rows)
}

func ratio(d stats.Distribution) string {
	if d.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", d.Median, d.Min, d.Max)
}

func latency(seconds float64) string { return ui.Seconds(time.Duration(seconds * 1e9)) }
