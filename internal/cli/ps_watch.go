package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/tasks"
	"github.com/swdt-dev/swdt/internal/ui"
)

// psWatch shows the latest table of each node.
type psWatch struct {
	options *psOptions
	records *records // nil: text
	page    *ui.Page
	screen  *screen // nil: no terminal, where each look stands below the one before

	mutex sync.Mutex
	nodes []psNode
}

// watchPs looks at all nodes, all of them at once, through lost connections.
func (a *app) watchPs(ctx context.Context, s *session, o *psOptions) error {
	w := &psWatch{options: o, page: a.page(), nodes: make([]psNode, len(s.documents))}
	switch {
	case !a.inText():
		w.records = a.records(a.streams.Out)
	case a.canDraw(a.streams.Out):
		w.screen = newScreen(a.streams.Out)
	}
	numbers := map[string]int{}
	for i, document := range s.documents {
		w.nodes[i].Name = document.Node.Metadata.Name
	}
	slices.SortFunc(w.nodes, func(a, b psNode) int { return natural.Compare(a.Name, b.Name) })
	for i, n := range w.nodes {
		numbers[n.Name] = i
	}
	a.global.parallel = max(a.global.parallel, len(s.documents)) // none waits for another's end
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (struct{}, error) {
		observer := tasks.NewObserver(n, tasks.Options{Pipe: doc.RuntimePipe(), Window: o.interval})
		return struct{}{}, n.Again(ctx, r, func(ctx context.Context) error {
			observer.Forget()
			w.begin()
			for {
				table, err := observer.Look(ctx)
				if err != nil {
					return err
				}
				ui.Done(r) // its live line would stand in the table
				if err := w.show(numbers[n.Name], newPsNode(n.Name, table, nil, o)); err != nil {
					return err
				}
			}
		})
	})
	return fleet.Failures(results)
}

// begin draws the next table below what was told of the connection meanwhile.
func (w *psWatch) begin() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.screen != nil {
		w.screen.leave()
	}
}

// show replaces a node's table.
func (w *psWatch) show(number int, n psNode) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.nodes[number] = n
	if w.records != nil {
		return w.records.write(n)
	}
	var text bytes.Buffer
	if w.screen == nil {
		fmt.Fprintf(&text, "%s %s\n", n.Name, n.table.Taken.Format("2006-01-02T15:04:05Z"))
		if err := w.write(&text, n); err != nil {
			return err
		}
		_, err := w.page.Write(text.Bytes())
		return err
	}
	if err := w.write(&text, w.nodes...); err != nil {
		return err
	}
	return w.screen.draw(text.String())
}

// write writes what could not be asked, and the table.
func (w *psWatch) write(to io.Writer, nodes ...psNode) error {
	for _, of := range nodes {
		for _, gap := range of.table.Gaps {
			if _, err := fmt.Fprintf(to, "%s: %s\n", of.Name, gap); err != nil {
				return err
			}
		}
	}
	return psList{Nodes: nodes, options: w.options}.text(ui.NewPage(to, false))
}
