package diag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/events"
	"github.com/swdt-dev/swdt/internal/ui"
)

// eventRow is an event in the table "events".
type eventRow struct {
	Time     time.Time      `json:"time"`
	Channel  string         `json:"channel"`
	Level    string         `json:"level"`
	Provider string         `json:"provider"`
	ID       int            `json:"id"`
	Record   uint64         `json:"record"`
	Process  int            `json:"process,omitempty"`
	Message  string         `json:"message"`
	Data     []events.Datum `json:"data,omitempty"`
}

func lastEvents(ctx context.Context, t *Task) error {
	channels, err := t.channels(ctx)
	if err != nil {
		return err
	}
	var rows []eventRow
	var failed []error
	for _, channel := range channels {
		err := channel.Read(ctx, events.Query{Last: of(t.Profile, 100, 200, 1000)},
			func(batch []events.Event, _ bool) error {
				for _, e := range batch {
					rows = append(rows, eventRow{
						Time: e.Time, Channel: e.Channel, Level: e.Level.String(), Provider: e.Provider, ID: e.ID,
						Record:  e.Record,
						Process: e.Process, Message: e.Message, Data: e.Data,
					})
				}
				return nil
			})
		if err != nil {
			failed = append(failed, fmt.Errorf("channel %s: %w", channel.Name(), err))
		}
	}
	slices.SortStableFunc(rows, func(a, b eventRow) int { return a.Time.Compare(b.Time) })
	err = t.Table("events", rows, func(w io.Writer) error {
		var lines [][]string
		for _, r := range rows {
			lines = append(lines, []string{r.Time.UTC().Format(time.RFC3339), r.Level, r.Channel, r.Provider,
				strconv.Itoa(r.ID), oneLine(r.Message)})
		}
		return ui.Table(w, []string{"TIME", "LEVEL", "CHANNEL", "PROVIDER", "ID", "MESSAGE"}, lines)
	})
	return errors.Join(append(failed, err)...)
}
