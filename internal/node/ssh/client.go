package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// A keep-alive request is sent every aliveEvery. If no answer arrives for deadAfter, the
// peer counts as dead. deadAfter is long, since answers queue behind bulk data on a slow
// link.
const (
	aliveEvery = 15 * time.Second
	deadAfter  = 45 * time.Second

	keepAliveRequest = "keepalive@openssh.com"
)

// Client is a connection to the target.
type Client struct {
	user    string
	address string
	hostKey string // SHA256:…
	client  *ssh.Client
	chain   []*ssh.Client
	done    chan struct{} // closed when the connection has ended
	further further       // the further connections to the same machine

	used atomic.Bool // the machine has opened a session

	mu  sync.Mutex
	err error // why the connection ended
}

func newClient(chain []*ssh.Client, last hop, hostKey string) *Client {
	c := &Client{user: last.user, address: last.address(), hostKey: hostKey, client: chain[len(chain)-1], chain: chain,
		done: make(chan struct{})}
	go func() {
		c.end(c.client.Wait())
		closeAll(chain[:len(chain)-1])
		c.further.close()
		close(c.done)
	}()
	go c.keepAlive()
	return c
}

// HostKey returns the fingerprint of the machine's trusted host key.
func (c *Client) HostKey() string { return c.hostKey }

// ServerVersion returns what the machine's SSH server says about itself, such as SSH-2.0-OpenSSH_for_Windows_9.5.
func (c *Client) ServerVersion() string { return string(c.client.ServerVersion()) }

// Address returns the host:port that the connection leads to.
func (c *Client) Address() string { return c.address }

// Done returns a channel that is closed when the connection has ended, from either side; Err then
// returns the cause.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns the cause of the connection's end, or nil while the connection exists.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// end records why the connection ended; only the first reason counts.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// Close ends the connection and everything that uses it.
func (c *Client) Close() error {
	c.end(net.ErrClosed)
	err := closeAll(c.chain)
	<-c.done
	return err
}

func (c *Client) keepAlive() {
	answered := func() error {
		// Any answer counts; sshd refuses requests that it does not know.
		_, _, err := c.client.SendRequest(keepAliveRequest, true, nil)
		return err
	}
	if err := watch(c.done, aliveEvery, deadAfter, answered); err != nil {
		c.end(err)
		closeAll(c.chain)
	}
}

// errDead is the cause if the machine has stopped answering keep-alive requests.
var errDead = errors.New("the machine no longer answers")

// watch calls the function ask repeatedly; every is the time between two calls. It returns an error
// if a call takes longer than maxSilence, and nil when the connection has ended for another reason.
func watch(done <-chan struct{}, every, maxSilence time.Duration, ask func() error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ticker.C:
		}
		answer := make(chan error, 1)
		go func() { answer <- ask() }()
		limit := time.NewTimer(maxSilence)
		select {
		case <-done:
			limit.Stop()
			return nil
		case err := <-answer:
			limit.Stop()
			if err != nil {
				return nil // the connection has ended, and Wait reports the cause
			}
		case <-limit.C:
			return fmt.Errorf("%w (silent for %s)", errDead, maxSilence)
		}
	}
}

// open opens a session and passes it to the function begin. It opens the session on this connection
// or, if the machine refuses another session on this connection, on a further connection.
func (c *Client) open(ctx context.Context, begin func(*ssh.Session) error) (*ssh.Session, error) {
	session, err := c.openHere(ctx, begin)
	if c.further.dial != nil && isRefusedSession(err) {
		return c.further.open(ctx, c.hostKey, begin, err)
	}
	return session, err
}

// openHere opens a session on this connection and passes it to the function begin. The SSH library
// does not support contexts, so a goroutine does the work. If the session opens after ctx has
// ended, another goroutine closes the session.
func (c *Client) openHere(ctx context.Context, begin func(*ssh.Session) error) (*ssh.Session, error) {
	type result struct {
		session *ssh.Session
		err     error
	}
	results := make(chan result, 1)
	go func() {
		session, err := c.client.NewSession()
		if err == nil {
			c.used.Store(true)
			if err = begin(session); err != nil {
				session.Close()
			}
		}
		results <- result{session, err}
	}()
	select {
	case r := <-results:
		return r.session, c.explained(ctx, r.err)
	case <-ctx.Done():
		go func() {
			if r := <-results; r.err == nil {
				r.session.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// explained returns err, the result of opening a session, or what ended the connection if it has ended.
func (c *Client) explained(ctx context.Context, err error) error {
	if err == nil || isRefusedSession(err) || c.answers(ctx) {
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	ended := c.Err()
	if c.used.Load() || errors.Is(ended, errDead) || errors.Is(ended, net.ErrClosed) {
		return ended
	}
	return &DroppedError{User: c.user, Address: c.address, Err: ended}
}

// answers reports whether the connection still exists: whether the machine answers a request, with whatever answer.
func (c *Client) answers(ctx context.Context) bool {
	answer := make(chan error, 1)
	go func() {
		_, _, err := c.client.SendRequest(keepAliveRequest, true, nil)
		answer <- err
	}()
	select {
	case err := <-answer:
		return err == nil
	case <-ctx.Done():
		return true
	}
}
