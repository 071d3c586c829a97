package apiserver

import (
	"net"
	"sync"
)

// SetDown makes the server unreachable, as while it restarts, or reachable again: it cuts all connections, also those
// of exec, and each new one. The objects stay, as those in etcd do.
func (c *Cluster) SetDown(down bool) { c.listener.setDown(down) }

// gate is a listener whose connections can be cut.
type gate struct {
	net.Listener

	mu   sync.Mutex
	down bool
	open map[*gated]bool
}

func newGate(listener net.Listener) *gate { return &gate{Listener: listener, open: map[*gated]bool{}} }

func (g *gate) setDown(down bool) {
	g.mu.Lock()
	g.down = down
	open := g.open
	if down {
		g.open = map[*gated]bool{}
	}
	g.mu.Unlock()
	if !down {
		return
	}
	for conn := range open {
		conn.Conn.Close()
	}
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		through := &gated{Conn: conn, gate: g}
		if g.lets(through) {
			return through, nil
		}
		conn.Close()
	}
}

func (g *gate) lets(conn *gated) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return false
	}
	g.open[conn] = true
	return true
}

// gated is a connection that a gate can cut.
type gated struct {
	net.Conn
	gate *gate
}

// Close implements net.Conn.
func (c *gated) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.open, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}
