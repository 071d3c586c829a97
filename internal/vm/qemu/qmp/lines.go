package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// ErrClosed is returned once the other end has closed the connection, as QEMU does when it ends, or has broken the
// protocol.
var ErrClosed = errors.New("QEMU has closed its control socket")

// lines is a connection that carries one JSON document in each line. It is used by one goroutine.
type lines struct {
	conn   net.Conn
	reader *bufio.Reader
	most   int    // the maximum length of a line that is read, in bytes
	begun  []byte // the beginning of a line whose rest has not come yet
	err    error  // why the connection is unusable
}

func newLines(conn net.Conn, most int) lines {
	return lines{conn: conn, reader: bufio.NewReader(conn), most: most}
}

// Close ends the connection.
func (l *lines) Close() error { return l.conn.Close() }

// send writes a command. If id is 0, the command has no identifier. The other end may have closed the connection: only
// the next read reports that, after everything that the other end has sent before.
func (l *lines) send(ctx context.Context, command string, arguments any, id int, before ...byte) error {
	request, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        int    `json:"id,omitempty"`
	}{command, arguments, id})
	if err != nil {
		return err
	}
	return l.during(ctx, func() error {
		written, err := l.conn.Write(append(append(before, request...), '\n'))
		if err != nil && written > 0 {
			l.err = fmt.Errorf("%w: %w", ErrClosed, err) // half a request is no request
		}
		return nil
	})
}

// read returns the next line. If ctx ends first, a later read returns it.
func (l *lines) read(ctx context.Context) (line []byte, err error) {
	err = l.during(ctx, func() error {
		for {
			part, err := l.reader.ReadSlice('\n')
			if len(l.begun)+len(part) > l.most {
				return fmt.Errorf("a message has more than %d bytes", l.most)
			}
			l.begun = append(l.begun, part...)
			if err == nil {
				line, l.begun = l.begun, nil
				return nil
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
		}
	})
	if err != nil && l.err == nil && ctx.Err() == nil {
		l.err = fmt.Errorf("%w: %w", ErrClosed, err)
		return nil, l.err
	}
	return line, err
}

// during performs a read or a write, which ends with ctx. The error is then the cause of the end.
func (l *lines) during(ctx context.Context, do func() error) error {
	switch {
	case l.err != nil:
		return l.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if err := l.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	passed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(passed)
		_ = l.conn.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection, which ends the action too
	})
	err := do()
	if !stop() {
		<-passed // so that it does not end a later action
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// message is anything that QEMU or a guest agent sends.
type message struct {
	Greeting *struct {
		Version struct {
			QEMU Version `json:"qemu"`
		} `json:"version"`
	} `json:"QMP"`
	Event  string          `json:"event"`
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
	ID     int             `json:"id"`
}

func parse(line []byte) (m message, err error) {
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("a message is malformed: %w", err)
	}
	return m, nil
}

// decode returns the result of a command, or its refusal.
func (m message) decode(command string, result any) error {
	if m.Error != nil {
		m.Error.Command = command
		return m.Error
	}
	if result == nil {
		return nil
	}
	if m.Return == nil {
		return fmt.Errorf("%s: the answer has no result", command)
	}
	if err := json.Unmarshal(m.Return, result); err != nil {
		return fmt.Errorf("%s: the answer is malformed: %w", command, err)
	}
	return nil
}
