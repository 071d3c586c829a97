// Package qmp is a client of QEMU's machine protocol: newline-delimited JSON over a Unix socket,
// with a greeting, commands, and events in between.
//
// Each read is bounded: a message by its size, a command by its context and by [CommandLimit], and
// the queue of events by its length.
//
//   - client.go: connect, run commands, receive events
//   - message.go: read one message
//   - job.go: commands that QEMU performs as jobs
package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// CommandLimit bounds each command, also if its context has a later deadline or none.
const CommandLimit = time.Minute

// maxEvents bounds the events that wait for their reader; the oldest is dropped first.
const maxEvents = 256

// ErrClosed is returned once QEMU has closed the connection, as it does when it ends.
var ErrClosed = errors.New("QEMU has closed its control socket")

// Error is QEMU's refusal of a command, or the failure of a job.
type Error struct {
	Command string
	Class   string `json:"class"` // GenericError, CommandNotFound, …
	Desc    string `json:"desc"`
}

func (e *Error) Error() string {
	if e.OfJob() {
		return fmt.Sprintf("QEMU's %s failed: %s", e.Command, e.Desc)
	}
	return fmt.Sprintf("QEMU refuses %s: %s", e.Command, e.Desc)
}

// OfJob reports whether Command began a job that failed. If not, QEMU refused Command itself. If
// RunJob returns such a refusal, Command may be query-jobs or job-dismiss; in this case, the job
// has begun already.
func (e *Error) OfJob() bool { return e.Class == jobFailed }

// Version is QEMU's version.
type Version struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
	Micro int `json:"micro"`
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Micro) }

// Event is a notification by QEMU.
type Event struct {
	Name string          // SHUTDOWN, RESET, …
	Data json.RawMessage // nil if the event has no data
}

// Client is a connection to one QEMU process. It is safe for concurrent use.
type Client struct {
	Version Version

	conn   net.Conn
	events chan Event
	done   chan struct{} // closed with the connection

	mu      sync.Mutex
	next    int
	waiting map[int]chan message
	err     error // why the connection ended
}

// Dial connects to the socket at a path, and negotiates. If another client is connected to the same
// socket, Dial waits until that client disconnects.
func Dial(ctx context.Context, path string) (*Client, error) {
	bounded, cancel := context.WithTimeout(ctx, CommandLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(bounded, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to QEMU: %w", err)
	}
	c, err := New(bounded, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// New negotiates on a connection. If New fails, the caller must close the connection.
func New(ctx context.Context, conn net.Conn) (*Client, error) {
	c := &Client{
		conn: conn, events: make(chan Event, maxEvents), done: make(chan struct{}), waiting: map[int]chan message{},
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	reader := bufio.NewReader(conn)
	first, err := readMessage(reader)
	if !stop() {
		return nil, fmt.Errorf("wait for QEMU's greeting: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("read QEMU's greeting: %w", err)
	}
	if first.Greeting == nil {
		return nil, errors.New("read QEMU's greeting: another program answers at its socket")
	}
	c.Version = first.Greeting.Version.QEMU
	go c.read(reader)
	if err := c.Run(ctx, "qmp_capabilities", nil, nil); err != nil {
		return nil, err
	}
	return c, nil
}

// Events returns the events since the connection began. The channel is closed when the connection
// ends. If more than maxEvents wait, the oldest are dropped.
func (c *Client) Events() <-chan Event { return c.events }

// Done returns a channel that is closed once the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Run performs a command and decodes its result, unless result is nil. The error is an *Error if
// QEMU refuses the command. ErrClosed means that QEMU may or may not have performed the command.
func (c *Client) Run(ctx context.Context, command string, arguments, result any) error {
	bounded, cancel := context.WithTimeout(ctx, CommandLimit)
	defer cancel()
	id, reply, err := c.expect()
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	defer c.forget(id)
	request, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        int    `json:"id"`
	}{command, arguments, id})
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if err := c.send(bounded, append(request, '\n')); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	select {
	case answer := <-reply:
		return answer.decode(command, result)
	case <-bounded.Done():
		return fmt.Errorf("%s: QEMU does not answer: %w", command, context.Cause(bounded))
	case <-c.done:
		select {
		case answer := <-reply: // the last message before the end
			return answer.decode(command, result)
		default:
			return fmt.Errorf("%s: %w", command, c.reason())
		}
	}
}

// expect reserves an identifier for a command.
func (c *Client) expect() (int, chan message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	c.next++
	reply := make(chan message, 1)
	c.waiting[c.next] = reply
	return c.next, reply, nil
}

func (c *Client) forget(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// send writes a request. If QEMU reads nothing, send fails at the deadline of ctx.
func (c *Client) send(ctx context.Context, request []byte) error {
	deadline, _ := ctx.Deadline()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if _, err := c.conn.Write(request); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return nil
}

// read delivers messages until the connection ends.
func (c *Client) read(reader *bufio.Reader) {
	defer close(c.events)
	defer close(c.done)
	for {
		m, err := readMessage(reader)
		if err != nil {
			c.mu.Lock()
			c.err = fmt.Errorf("%w: %w", ErrClosed, err)
			c.mu.Unlock()
			return
		}
		if m.Event != "" {
			c.queue(Event{Name: m.Event, Data: m.Data})
			continue
		}
		c.mu.Lock()
		reply := c.waiting[m.ID]
		delete(c.waiting, m.ID) // a second answer to the same command has no receiver
		c.mu.Unlock()
		if reply != nil {
			reply <- m
		}
	}
}

// queue keeps an event for its reader. If too many events wait, queue drops the oldest. Only the
// method read calls queue.
func (c *Client) queue(e Event) {
	for {
		select {
		case c.events <- e:
			return
		default:
		}
		select {
		case <-c.events:
		default:
		}
	}
}

func (c *Client) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
