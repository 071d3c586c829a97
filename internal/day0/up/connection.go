package up

import (
	"context"
	"sync"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// connection is the connection to a node, which the stages of the node share.
type connection struct {
	ended chan struct{} // closed when node and err are set
	node  *node.Node
	err   error
}

// connect returns the connection to a node, which it makes if there is none. disconnect closes it.
func (w *work) connect(ctx context.Context, document config.Document, r ui.Reporter) (*node.Node, error) {
	name := document.Node.Metadata.Name
	w.mu.Lock()
	c := w.connections[name]
	if c == nil {
		c = w.dial(ctx, document, r)
	}
	w.mu.Unlock()
	<-c.ended // if ctx ends, this is closed soon after, since Connect then returns
	if c.err != nil {
		w.mu.Lock()
		delete(w.connections, name)
		w.mu.Unlock()
	}
	return c.node, c.err
}

// dial begins to connect to a node. w.mu must be held.
func (w *work) dial(ctx context.Context, document config.Document, r ui.Reporter) *connection {
	c := &connection{ended: make(chan struct{})}
	if w.connections == nil {
		w.connections = map[string]*connection{}
	}
	w.connections[document.Node.Metadata.Name] = c
	go func() {
		defer close(c.ended)
		c.node, c.err = w.Connect(ctx, document, r)
	}()
	return c
}

// connectEarly begins to connect to nodes before their joins begin. It does so only if all stages before
// the join have succeeded in an earlier run, since they then take less time than the connection. On a
// first run, the connection would be open for minutes without being used.
func (w *work) connectEarly(ctx context.Context, all []*stage) {
	for _, s := range all {
		if s.kind != Join || !w.foundBefore(s) {
			continue
		}
		for _, document := range w.documents {
			if document.Node.Metadata.Name == s.node && document.Node.Spec.Machine == nil {
				w.mu.Lock()
				w.dial(ctx, document, w.Reporter(s.node))
				w.mu.Unlock()
			}
		}
	}
}

// foundBefore reports whether an earlier run has completed all stages that s needs.
func (w *work) foundBefore(s *stage) bool {
	for _, needed := range s.needs {
		if needed != nil && w.notes.now().Stages[label(needed.kind, needed.node)] != succeeded {
			return false
		}
	}
	return true
}

// reconnect closes the connection to a node, so that the next stage has a new session. Programs in the
// present session still have the settings from before a change.
func (w *work) reconnect(ctx context.Context, name string) {
	w.mu.Lock()
	c := w.connections[name]
	delete(w.connections, name)
	w.mu.Unlock()
	c.leave(ctx)
}

// disconnect closes all connections.
func (w *work) disconnect(ctx context.Context) {
	w.mu.Lock()
	all := w.connections
	w.connections = nil
	w.mu.Unlock()
	var leaving sync.WaitGroup
	for _, c := range all {
		leaving.Go(func() { c.leave(ctx) })
	}
	leaving.Wait()
}

func (c *connection) leave(ctx context.Context) {
	if c == nil {
		return
	}
	<-c.ended
	if c.node != nil {
		c.node.Leave(ctx)
	}
}
