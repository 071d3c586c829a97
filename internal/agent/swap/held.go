package swap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
)

// patience returns the transaction's way to wait for files of a component that other programs hold. The journal names
// each of these programs.
func (t *transaction) patience(c Component, limit time.Duration) patience.Patience {
	return patience.Patience{
		Files: t.Platform.Files, Limit: limit,
		Waiting: func(held *patience.HeldError) { _ = t.note(Waiting, c.Name, "%s is held by %s", held.Path, held.By()) },
	}
}

// awaitFiles waits, while all services still run, until no program holds a file that the transaction is going to
// rename.
func (t *transaction) awaitFiles(ctx context.Context) error {
	deadline := time.Now().Add(patience.Long)
	for _, c := range t.plan.Components {
		if !c.swaps() {
			continue
		}
		for _, path := range []string{c.Staged, c.Destination} {
			if err := t.patience(c, max(time.Until(deadline), time.Millisecond)).Await(ctx, path); err != nil {
				return &failure{component: c.Name, err: fmt.Errorf("nothing was stopped: %w", err)}
			}
		}
	}
	return nil
}

// withWaits adds to a message how long the transaction waited for files of a component, and for which program, unless
// the message is about an error that names it.
func (t *transaction) withWaits(c Component, message string, cause error) string {
	waited, holder := t.waits(c)
	if waited == "" {
		return message
	}
	if _, named := errors.AsType[*patience.HeldError](cause); !named {
		waited += ", since " + holder
	}
	return strings.TrimPrefix(message+"; "+waited, "; ")
}

// waits returns how long the transaction waited for files of a component, "" for not at all, and the last file and its
// holder. A wait lasts from its record to the next one.
func (t *transaction) waits(c Component) (waited, holder string) {
	var running, stopped time.Duration
	for i, r := range t.journal.records {
		if r.State != Waiting || r.Component != c.Name {
			continue
		}
		ended := time.Now()
		if i+1 < len(t.journal.records) {
			ended = t.journal.records[i+1].Time
		}
		if first, ok := t.journal.at(Stopping, ""); ok && !r.Time.Before(first) {
			stopped += ended.Sub(r.Time)
		} else {
			running += ended.Sub(r.Time)
		}
		holder = r.Message
	}
	var parts []string
	if running > 0 {
		parts = append(parts, roundly(running)+" before the stop")
	}
	if stopped > 0 {
		parts = append(parts, roundly(stopped)+" after the stop")
	}
	if len(parts) == 0 {
		return "", ""
	}
	return "waited " + strings.Join(parts, " and "), holder
}

func roundly(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
