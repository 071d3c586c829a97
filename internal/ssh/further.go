package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/crypto/ssh"
)

// further are connections to the same machine beside the first one. An sshd with a
// small MaxSessions refuses a second session on a connection; on another one it is
// welcome.
type further struct {
	dial func(context.Context) (*Client, error)

	mu      sync.Mutex // held while one is dialed: two refused at once need one each
	closed  bool
	clients []*Client
}

// mostFurther bounds the connections: SFTP, the agent, its bulk channel and its
// relays at once.
const mostFurther = 4

// open opens a session on a connection that has room for one, or on a new one. why
// is how the machine refused it on the first.
func (f *further) open(ctx context.Context, hostKey string, begin func(*ssh.Session) error, why error) (*ssh.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.clients {
		session, err := c.openHere(ctx, begin)
		if err == nil || !isRefusedSession(err) {
			return session, err
		}
	}
	if f.closed || len(f.clients) >= mostFurther {
		return nil, why
	}
	c, err := f.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; and a further connection failed: %w", why, err)
	}
	if c.hostKey != hostKey {
		c.Close()
		return nil, fmt.Errorf("%w; and a further connection leads to another machine (host key %s, not %s)", why, c.hostKey, hostKey)
	}
	f.clients = append(f.clients, c)
	return c.openHere(ctx, begin)
}

// close closes all connections. None is made afterwards.
func (f *further) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, c := range f.clients {
		c.Close()
	}
}

// isRefusedSession reports whether the machine has no room for a session on this
// connection.
func isRefusedSession(err error) bool {
	var refused *ssh.OpenChannelError
	return errors.As(err, &refused)
}
