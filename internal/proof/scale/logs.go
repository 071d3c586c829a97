package scale

import (
	"context"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/logs"
)

// logLimit bounds the reading of kube-proxy's log.
const logLimit = time.Minute

// readLog counts the errors that kube-proxy logged since a moment, by the clock of this machine. Lines
// that differ only in their values are one kind of error.
func (w *watcher) readLog(ctx context.Context, since time.Time) {
	ctx, cancel := context.WithTimeout(ctx, logLimit)
	defer cancel()
	w.mu.Lock()
	since = since.Add(w.offset)
	w.mu.Unlock()
	err := logs.EachError(ctx, w.node, w.Proxy, since, w.r, func(r logs.Record) {
		w.note(FromLog, messageOf(r.Text), 1)
	})
	if err != nil {
		w.r.Warn("read the log of %s: %v", w.Proxy, err)
	}
}

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
