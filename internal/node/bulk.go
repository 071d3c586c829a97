package node

import (
	"context"
	"sync"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// Bulk gives a client for bytes that take long: an agent of their own, on a
// channel of their own of the connection that is there. Calls on n.Files and the
// others then need not wait behind megabytes. The agent is started when it is
// first asked for, once for each connection, and ends with it; the client is good
// until the connection is replaced, and is to be asked for again then. Where the
// node lets nobody have a second channel, it is n.Files.
func (n *Node) Bulk(ctx context.Context) (agentv1.FilesClient, error) {
	caller, err := n.second(ctx, func(l *link) *secondLink { return &l.bulk })
	if err != nil || caller == nil {
		return n.Files, err
	}
	return agentv1.NewFilesClient(caller), nil
}

// second makes calls over a further channel of the present connection. It is nil
// where there is none to be had: n's own clients have to do.
func (n *Node) second(ctx context.Context, which func(*link) *secondLink) (*caller, error) {
	if n.caller == nil {
		return nil, nil // made of clients alone, as tests do
	}
	l, err := n.caller.current()
	if err != nil {
		return nil, err
	}
	further, err := which(l).open(ctx, func(ctx context.Context) (*link, error) {
		agent, err := n.startAgent(ctx, l.client)
		if err != nil {
			return nil, err
		}
		return newLink(l.client, agent)
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		n.opts.Reporter.Debug("no further channel, going on without: %v", err)
		return nil, nil
	}
	return &caller{node: n.Name, calls: n.caller.calls, link: further}, nil
}

// secondLink is a further channel of a connection with an agent of its own, once
// somebody asked for it.
type secondLink struct {
	mu     sync.Mutex
	opened chan struct{} // nil: nobody asked; closed: link or err is there
	link   *link
	err    error
}

// open starts the agent or waits for whoever does. It is started for all who ask,
// so that the end of one's context does not end it.
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

// hangUp lets the agent end, where there is one.
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
	default: // it ends with the connection, see wait
	}
}

// wait follows the end of the connection: what was being started has failed.
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
		s.link.agent.Stdin.Close()
	}
}
