package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

const (
	stderrKept = 64 << 10
	outputKept = 1 << 20
)

// Process is a command that runs on the machine, with its own SSH channel.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader

	session *ssh.Session
	stderr  *bounded.Tail
	done    chan struct{}
	err     error // the error of session.Wait; valid once done is closed
}

// Start starts a command, which the machine's login shell parses. ctx bounds the
// starting only.
func (c *Client) Start(ctx context.Context, command string) (*Process, error) {
	p := &Process{stderr: &bounded.Tail{Most: stderrKept}, done: make(chan struct{})}
	session, err := c.open(ctx, func(s *ssh.Session) (err error) {
		s.Stderr = p.stderr
		stdin, err := s.StdinPipe()
		if err != nil {
			return err
		}
		p.Stdin = &closedOnce{WriteCloser: stdin}
		if p.Stdout, err = s.StdoutPipe(); err != nil {
			return err
		}
		return s.Start(command)
	})
	if _, dropped := errors.AsType[*DroppedError](err); dropped {
		return nil, err
	}
	if err != nil {
		if gone := c.Err(); gone != nil {
			err = gone
		}
		return nil, fmt.Errorf("start %q on %s: %w", command, c.address, err)
	}
	p.session = session
	go func() {
		p.err = session.Wait()
		close(p.done)
	}()
	return p, nil
}

// closedOnce lets several goroutines write to a channel's stdin and close it, which x/crypto/ssh
// does not synchronise. It sends the end of file only when no write is under way. A blocked write
// ends when the channel ends.
type closedOnce struct {
	io.WriteCloser

	mu      sync.Mutex
	writing int
	closed  bool
}

func (c *closedOnce) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return 0, io.ErrClosedPipe
	}
	c.writing++
	c.mu.Unlock()
	n, err := c.WriteCloser.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing--; c.closed && c.writing == 0 {
		_ = c.WriteCloser.Close() // this close was delayed until now, so its error cannot reach the caller of Close
	}
	return n, err
}

func (c *closedOnce) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.writing > 0 {
		return nil // the last write that is under way closes stdin
	}
	return c.WriteCloser.Close()
}

// Done returns a channel that is closed when the command, or its connection, has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode waits for the command's end and returns its exit code. It returns -1 and an error if a
// signal ended the command, if the exit code is unknown because the connection broke, or if ctx
// ended first.
func (p *Process) ExitCode(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		select {
		case <-p.done: // the exit code is known, and takes precedence over ctx's end
		default:
			return -1, ctx.Err()
		}
	}
	var exited *ssh.ExitError
	switch {
	case p.err == nil:
		return 0, nil
	case errors.As(p.err, &exited) && exited.Signal() == "":
		return exited.ExitStatus(), nil
	default:
		return -1, p.err
	}
}

// Stderr returns the last 64 KiB that the command has written to stderr so far.
func (p *Process) Stderr() string { return windowstext.Console(p.stderr.Bytes()) }

// Close ends the command's channel. The command then gets the end of its stdin, and cannot write any more. Windows'
// sshd does not end it: the job that the command is in ends with the shell (w32-doexec.c, do_exec_windows, and issue
// #1751 of Win32-OpenSSH).
func (p *Process) Close() error {
	if err := p.session.Close(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Output is the result of a command that has ended.
type Output struct {
	Stdout, Stderr string
	ExitCode       int
}

// Run runs a command to its end and returns its exit code, the last 1 MiB of its stdout, and the
// last 64 KiB of its stderr. A nonzero exit code is not an error.
func (c *Client) Run(ctx context.Context, command string) (Output, error) {
	p, err := c.Start(ctx, command)
	if err != nil {
		return Output{}, err
	}
	defer p.Close()
	p.Stdin.Close()
	stdout := &bounded.Tail{Most: outputKept}
	copied := make(chan struct{})
	go func() {
		io.Copy(stdout, p.Stdout) // the copy ends with the command; ExitCode reports how the command ended
		close(copied)
	}()
	code, err := p.ExitCode(ctx)
	if err != nil {
		return Output{}, fmt.Errorf("run %q on %s: %w", command, c.address, err)
	}
	select {
	case <-copied:
	case <-ctx.Done():
		return Output{}, fmt.Errorf("run %q on %s: %w", command, c.address, ctx.Err())
	}
	return Output{Stdout: windowstext.Console(stdout.Bytes()), Stderr: p.Stderr(), ExitCode: code}, nil
}
