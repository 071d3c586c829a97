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
	if n.caller == nil {
		return n.Files, nil // made of clients alone, as tests do
	}
	l, err := n.caller.current()
	if err != nil {
		return nil, err
	}
	b, err := l.bulk.open(ctx, func(ctx context.Context) (*link, error) {
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
		n.opts.Reporter.Debug("no channel for bulk data, going on without: %v", err)
		return n.Files, nil
	}
	return agentv1.NewFilesClient(&caller{node: n.Name, calls: n.caller.calls, link: b}), nil
}

// secondLink is the bulk agent of a connection, once somebody asked for it.
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

// hangUp lets the bulk agent end, where there is one.
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
