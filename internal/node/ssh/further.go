package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/crypto/ssh"
)

// further has the connections to the same machine in addition to the first one. An sshd with a
// small MaxSessions refuses a second session on a connection, but accepts that session on another
// connection.
type further struct {
	dial func(context.Context) (*Client, error)

	// mu is held while dialing, so that two sessions that are refused at the same time do not dial
	// at the same time.
	mu      sync.Mutex
	closed  bool
	clients []*Client
}

// mostFurther bounds the further connections: one each for SFTP, the agent, its bulk
// channel and its relays.
const mostFurther = 4

// open opens a session and passes it to the function begin. It uses a further connection that
// accepts another session, or makes a new further connection. why is the error with which the first
// connection refused the session.
func (f *further) open(ctx context.Context, hostKey string, begin func(*ssh.Session) error,
	why error) (*ssh.Session, error) {
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
		return nil, fmt.Errorf("%w; and a further connection leads to another machine (host key %s, not %s)", why,
			c.hostKey, hostKey)
	}
	f.clients = append(f.clients, c)
	return c.openHere(ctx, begin)
}

// close closes all further connections. After that, open makes no new connection.
func (f *further) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, c := range f.clients {
		c.Close()
	}
}

// isRefusedSession reports whether err is the machine's refusal of another session on a connection.
func isRefusedSession(err error) bool {
	var refused *ssh.OpenChannelError
	return errors.As(err, &refused)
}
