package scale

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
)

// logLimit bounds the reading of kube-proxy's log.
const logLimit = time.Minute

// readLog counts the errors that kube-proxy logged since a moment, by the clock of this machine. A node
// that has no such log is no failure.
func (w *watcher) readLog(ctx context.Context, since time.Time) {
	ctx, cancel := context.WithTimeout(ctx, logLimit)
	defer cancel()
	w.mu.Lock()
	since = since.Add(w.offset)
	w.mu.Unlock()
	merger := logs.NewMerger(false, &errorCounter{w})
	in := merger.Begin()
	failed := make(chan error, 1)
	go func() {
		err := logs.Show(ctx, w.node, logs.Options{Sources: []string{w.Proxy}, Since: since, Tail: -1,
			Level: logline.Error}, merger, in, w.r)
		in.Close(ctx)
		failed <- err
	}()
	err := merger.Run(ctx)
	cancel()
	err = errors.Join(err, <-failed)
	var (
		nothing *logs.NothingError
		unknown *logs.UnknownSourceError
	)
	if err != nil && !errors.As(err, &nothing) && !errors.As(err, &unknown) {
		w.r.Warn("read the log of %s: %v", w.Proxy, err)
	}
}

// errorCounter counts lines by the text before their values.
type errorCounter struct{ w *watcher }

func (c *errorCounter) Record(r logs.Record) error {
	c.w.note(FromLog, messageOf(r.Text), 1)
	return nil
}

func (c *errorCounter) Flush() error { return nil }

// messageOf returns the constant part of a line of klog, such as Endpoint deletion failed of
// E1123 10:00:00.000000 1 proxier.go:487] "Endpoint deletion failed" err="…" ip="…".
func messageOf(line string) string {
	if _, text, ok := strings.Cut(line, "] "); ok {
		line = text
	}
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		if text, _, ok := strings.Cut(quoted, `"`); ok {
			return text
		}
	}
	return line
}
