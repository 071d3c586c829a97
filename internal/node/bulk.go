package node

import (
	"context"
	"sync"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// Bulk returns a client for transfers that take long. The client uses a second agent on its own
// channel of the present connection, so that calls on n.Files and the other clients need not wait
// until a large transfer ends. The second agent starts at the first call of Bulk, once for each
// connection, and ends with the connection. After the connection has been replaced, call Bulk
// again. If the second agent does not start, for example because the node refuses a second channel,
// Bulk returns n.Files.
func (n *Node) Bulk(ctx context.Context) (agentv1.FilesClient, error) {
	caller, err := n.second(ctx, func(l *link) *secondLink { return &l.bulk })
	if err != nil || caller == nil {
		return n.Files, err
	}
	return agentv1.NewFilesClient(caller), nil
}

// second returns a caller on a further channel of the present connection. It returns nil and no
// error if no agent starts on a further channel, for example because the node refuses the channel;
// the calling function then uses n's own clients.
func (n *Node) second(ctx context.Context, which func(*link) *secondLink) (*caller, error) {
	if n.caller == nil {
		return nil, nil // n is a test's node, which has clients but no connection
	}
	l, err := n.caller.current()
	if err != nil {
		return nil, err
	}
	further, err := which(l).open(ctx, func(ctx context.Context) (*link, error) {
		agent, err := n.startAgent(ctx, l.conn)
		if err != nil {
			return nil, err
		}
		return newLink(l.conn, agent)
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		n.opts.Reporter.Debug("no further channel, continuing without it: %v", err)
		return nil, nil
	}
	return &caller{node: n.Name, calls: n.caller.calls, link: further}, nil
}

// secondLink is a further channel of a connection. Its agent starts when open is called for
// the first time.
type secondLink struct {
	mu     sync.Mutex
	opened chan struct{} // nil: not requested; closed: link or err is set
	link   *link
	err    error
}

// open starts the agent of this channel, or waits for the call that is already starting it.
// The start serves all callers, so the end of one caller's context does not cancel it.
func (s *secondLink) open(ctx context.Context, start func(context.Context) (*link, error)) (*link, error) {
	s.mu.Lock()
	if s.opened == nil {
		opened := make(chan struct{})
		s.opened = opened
		go func() {
			defer close(opened)
			s.link, s.err = start(context.WithoutCancel(ctx))
		}()
	}
	opened := s.opened
	s.mu.Unlock()
	select {
	case <-opened:
		return s.link, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hangUp ends the agent, if there is one.
func (s *secondLink) hangUp() {
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if opened == nil {
		return
	}
	select {
	case <-opened:
		s.release()
	default: // the agent is still starting; it ends with the connection, see wait
	}
}

// wait waits for a start of the agent that is still under way, and then ends the agent. The caller
// has already closed the connection, so that the start fails soon.
func (s *secondLink) wait() {
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if opened != nil {
		<-opened
		s.release()
	}
}

func (s *secondLink) release() {
	if s.link != nil {
		s.link.rpc.Close()
		s.link.agent.Input().Close()
	}
}
