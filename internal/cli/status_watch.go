package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
	"github.com/swdt-dev/swdt/internal/wait"
)

// liveStatus shows the latest status of each node.
type liveStatus struct {
	app    *app
	record func(push.NodeStatus) error // writes a status as a record; nil: they are printed as text
	page   *ui.Page
	screen *livetable.Screen // nil: no terminal

	mutex sync.Mutex
	nodes []push.NodeStatus // in the order of their names
}

// watchStatus shows the nodes' status until Ctrl-C: on a terminal as a table that is redrawn, else each node again when it
// has changed.
func (a *app) watchStatus(ctx context.Context, s *session, interval time.Duration) error {
	w := &liveStatus{app: a, page: a.page()}
	switch {
	case !a.inText():
		records := a.records(a.streams.Out)
		w.record = func(n push.NodeStatus) error { return records.write(n) }
	case a.canDraw(a.streams.Out):
		w.screen = livetable.NewScreen(a.streams.Out)
	}
	s.quiet = true
	a.global.parallel = max(a.global.parallel, len(s.documents)) // no node waits until another node's watch ends
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (struct{}, error) {
		return struct{}{}, n.Reconnecting(ctx, r, func(ctx context.Context) error {
			w.leave()
			for {
				options := push.StatusOptions{Sources: source.NewSet(source.Options{})} // a source may have changed
				status, err := push.Status(ctx, n, doc, options, r)
				if err != nil {
					return err
				}
				ui.Done(r) // without this, the live line of r would remain within the table
				if err := w.show(status); err != nil {
					return err
				}
				if err := wait.For(ctx, interval); err != nil {
					return err
				}
			}
		})
	})
	if cause := context.Cause(ctx); errors.As(cause, new(*InterruptedError)) {
		return cause
	}
	return fleet.Failures(results)
}

// leave makes the next table appear below the messages about the connection.
func (w *liveStatus) leave() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.screen != nil {
		w.screen.Leave()
	}
}

// show draws all nodes, or writes the node's status unless it is the one that was written last.
func (w *liveStatus) show(status push.NodeStatus) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.app.remedyComponents(status)
	at, known := slices.BinarySearchFunc(w.nodes, status.Name, func(n push.NodeStatus, name string) int {
		switch {
		case n.Name == name:
			return 0
		case natural.Less(n.Name, name):
			return -1
		}
		return 1
	})
	changed := true
	if known {
		changed = w.nodes[at].Differs(status)
		w.nodes[at] = status
	} else {
		w.nodes = slices.Insert(w.nodes, at, status)
	}
	switch {
	case w.screen != nil:
		var text bytes.Buffer
		if err := w.write(&text, w.nodes...); err != nil {
			return err
		}
		return w.screen.Draw(text.String(), "Ctrl-C ends the watch")
	case !changed:
		return nil
	case w.record != nil:
		return w.record(status)
	}
	if _, err := fmt.Fprintln(w.page, time.Now().Format(time.TimeOnly)); err != nil {
		return err
	}
	return w.write(w.page, status)
}

func (w *liveStatus) write(to io.Writer, nodes ...push.NodeStatus) error {
	page := ui.NewPage(to, false)
	page.Wide, page.Sort = w.page.Wide, w.page.Sort
	return push.StatusReport{Nodes: nodes}.WriteText(page)
}
