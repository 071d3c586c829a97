// Package qmp has the clients of QEMU's two line protocols, in which each line is a JSON document: the machine
// protocol, with a greeting, commands and events, and that of the guest agent inside a VM.
//
// Each read is bounded: a message by its size, a command by its context and by [CommandLimit], and
// the queue of events by its length. A client is used by one goroutine. It reads only while a command or [Client.Await]
// waits; the events that come meanwhile are queued.
//
//   - client.go: connect to QEMU, run commands, receive events
//   - job.go: commands that QEMU performs as jobs
//   - agent.go: the guest agent
//   - lines.go: write a command, read a message
package qmp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// CommandLimit bounds each command, also if its context has a later deadline or none.
const CommandLimit = time.Minute

// maxMessage bounds a message in bytes. The largest answers that swdt asks for have a
// few hundred kilobytes.
const maxMessage = 4 << 20

// maxEvents bounds the events that wait for their reader; the oldest is dropped first.
const maxEvents = 256

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

// Client is a connection to one QEMU process.
type Client struct {
	Version Version

	lines
	last   int      // the identifier of the last command
	events []string // their names
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
	c := &Client{lines: newLines(conn, maxMessage)}
	first, err := c.next(ctx)
	if err != nil {
		return nil, fmt.Errorf("read QEMU's greeting: %w", err)
	}
	if first.Greeting == nil {
		return nil, errors.New("read QEMU's greeting: another program answers at its socket")
	}
	c.Version = first.Greeting.Version.QEMU
	if err := c.Run(ctx, "qmp_capabilities", nil, nil); err != nil {
		return nil, err
	}
	return c, nil
}

// Events returns the names of the events that have come since the last call, such as RESET, the oldest first. If more
// than maxEvents have come, the oldest are missing.
func (c *Client) Events() []string {
	events := c.events
	c.events = nil
	return events
}

// Await waits for the event with this name, and drops the events before it.
func (c *Client) Await(ctx context.Context, name string) error {
	for {
		for _, event := range c.Events() {
			if event == name {
				return nil
			}
		}
		if _, err := c.next(ctx); err != nil {
			return err
		}
	}
}

// Run performs a command and decodes its result, unless result is nil. The error is an *Error if
// QEMU refuses the command. ErrClosed means that QEMU may or may not have performed the command.
func (c *Client) Run(ctx context.Context, command string, arguments, result any) error {
	bounded, cancel := context.WithTimeout(ctx, CommandLimit)
	defer cancel()
	c.last++
	err := c.send(bounded, command, arguments, c.last)
	for err == nil {
		var m message
		// Other messages are events, or answers to commands that were given up.
		if m, err = c.next(bounded); err == nil && m.Event == "" && m.ID == c.last {
			return m.decode(command, result)
		}
	}
	if bounded.Err() != nil && !errors.Is(err, ErrClosed) {
		return fmt.Errorf("%s: QEMU does not answer: %w", command, err)
	}
	return fmt.Errorf("%s: %w", command, err)
}

// next returns the next message. It queues an event, and drops the oldest event if too many wait.
func (c *Client) next(ctx context.Context) (message, error) {
	line, err := c.read(ctx)
	if err != nil {
		return message{}, err
	}
	m, err := parse(line)
	if err != nil {
		c.err = fmt.Errorf("%w: %w", ErrClosed, err)
		return message{}, c.err
	}
	if m.Event != "" {
		c.events = append(c.events[max(0, len(c.events)+1-maxEvents):], m.Event)
	}
	return m, nil
}
