package owners

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// Live shows the latest table of each watched node.
type Live struct {
	Selection Selection
	Record    func(NodeReport) error // writes a table as a record; nil: tables are printed as text
	Page      *ui.Page
	Screen    *livetable.Screen // nil: no terminal; each table is printed below the previous one
	Keys      *livetable.Keys

	mutex   sync.Mutex
	nodes   []NodeReport
	numbers map[string]int // the index of each node, by the node's name
}

// Begin sets the nodes that are watched.
func (w *Live) Begin(names []string) {
	slices.SortFunc(names, natural.Compare)
	w.numbers = map[string]int{}
	for i, name := range names {
		w.nodes = append(w.nodes, NodeReport{Outcome: fleet.Outcome{Name: name}})
		w.numbers[name] = i
	}
}

// Watch shows the table of one node repeatedly until ctx ends. If the connection is
// lost, Watch reconnects.
func (w *Live) Watch(ctx context.Context, n *node.Node, pipe string, interval time.Duration, r ui.Reporter) error {
	observer := NewObserver(n, Options{Pipe: pipe, Window: interval})
	return n.Reconnecting(ctx, r, func(ctx context.Context) error {
		observer.Forget()
		w.leaveScreen()
		for {
			table, err := observer.Observe(ctx)
			if err != nil {
				return err
			}
			ui.Done(r) // without this, the live line of r would remain within the table
			outcome := fleet.NewOutcome(n.Name, fleet.OK, nil)
			if err := w.show(NodeReport{Outcome: outcome, Table: w.Selection.shown(table), whole: table}); err != nil {
				return err
			}
		}
	})
}

// leaveScreen makes Live draw the next table below the messages about the connection.
func (w *Live) leaveScreen() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.Screen != nil {
		w.Screen.Leave()
	}
}

// show replaces a node's table, and prints or draws the result.
func (w *Live) show(n NodeReport) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.nodes[w.numbers[n.Name]] = n
	if w.Record != nil {
		return w.Record(n)
	}
	var text bytes.Buffer
	if w.Screen == nil {
		fmt.Fprintf(&text, "%s %s\n", n.Name, n.whole.Taken.Format("2006-01-02T15:04:05Z"))
		if err := writeNodes(&text, w.Selection, w.Page, n); err != nil {
			return err
		}
		_, err := w.Page.Write(text.Bytes())
		return err
	}
	w.Keys.Begin(func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		_ = w.draw()
	})
	return w.draw()
}

// draw draws the latest tables with the order and filter that the keys chose.
func (w *Live) draw() error {
	view := w.Keys.View()
	wanted := view.Current(w.Selection.Sort)
	selection := w.Selection
	selection.Sort, selection.Reverse, selection.view = wanted.Sort, wanted.Reverse, view
	nodes := slices.Clone(w.nodes)
	for i := range nodes {
		nodes[i].Table = filter{wanted.Choice}.filtered(nodes[i].Table)
	}
	var text bytes.Buffer
	if err := writeNodes(&text, selection, w.Page, nodes...); err != nil {
		return err
	}
	return w.Screen.Draw(text.String(), wanted.Footer...)
}

// writeNodes writes the gaps of each node's table, and one table of all nodes with the columns and the order of like.
func writeNodes(to io.Writer, s Selection, like *ui.Page, nodes ...NodeReport) error {
	for _, of := range nodes {
		for _, gap := range of.whole.Gaps {
			if _, err := fmt.Fprintf(to, "%s: %s\n", of.Name, gap); err != nil {
				return err
			}
		}
	}
	page := ui.NewPage(to, false)
	page.Wide, page.Sort = like.Wide, like.Sort
	return Report{Nodes: nodes, selection: s}.WriteText(page)
}
