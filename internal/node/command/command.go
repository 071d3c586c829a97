// Package command runs a program on a node, with its streams and exit code, as if it
// ran on your machine. It is the client of the agent's Processes.Run.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// chunk is the most of stdin that one message carries, in bytes.
const chunk = 64 << 10

// Streams are the standard streams of the program. A nil Stdin is empty. Output for a nil writer
// is discarded.
type Streams struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Resized gets each further size of the program's terminal; nil: its size does not change. The
	// program has a terminal if the RunCommand has the first size. Stdin then has its keys, and Stdout
	// gets all its output.
	Resized <-chan *agentv1.TerminalSize
}

// mostInMemory bounds the output that is kept in memory, in bytes.
const mostInMemory = 64 << 20

// Run runs the program to its end and returns its exit code, whatever that is. err
// reports a program that could not be started or followed, or a failure of one of the
// caller's streams. When ctx ends, the program and everything it started end too.
//
// If a writer is a *bytes.Buffer or *strings.Builder, Run returns an error when the program has
// printed more than 64 MiB to that writer, since the node decides how much it sends.
//
// If Stdin still blocks in Read when the program has ended, Run returns without waiting for that
// Read: a read from a terminal cannot be cancelled.
func Run(ctx context.Context, processes agentv1.ProcessesClient, c *agentv1.RunCommand, s Streams) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the program if Run returns first
	s.Stdout, s.Stderr = LimitMemory(s.Stdout), LimitMemory(s.Stderr)
	stream, err := processes.Run(ctx)
	if err != nil {
		return 0, err
	}
	// io.EOF means that the call has ended already; Recv returns the cause.
	if err := stream.Send(&agentv1.RunRequest{Command: c, StdinClosed: s.Stdin == nil}); err != nil &&
		!errors.Is(err, io.EOF) {
		return 0, err
	}
	feeding := make(chan error, 1)
	if s.Stdin == nil {
		if err := stream.CloseSend(); err != nil {
			return 0, err
		}
	} else {
		send := &safeSender{stream: stream}
		go resize(ctx, send, s.Resized)
		go func() {
			err := feed(send, s.Stdin)
			feeding <- err
			if err != nil {
				cancel()
			}
		}()
	}
	code, err := receive(stream, s)
	if err != nil {
		select {
		case feedErr := <-feeding:
			if feedErr != nil {
				return 0, feedErr
			}
		default:
		}
	}
	return code, err
}

// LimitMemory returns w, unless w is a *bytes.Buffer or *strings.Builder, which keep everything in
// memory: for these it returns a writer to w that fails after 64 MiB.
func LimitMemory(w io.Writer) io.Writer {
	switch w.(type) {
	case *bytes.Buffer, *strings.Builder:
		return &bounded{w: w, left: mostInMemory}
	}
	return w
}

type bounded struct {
	w    io.Writer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, fmt.Errorf("the program has printed more than %d MiB, which cannot be right", mostInMemory>>20)
	}
	b.left -= len(p)
	return b.w.Write(p)
}

type sender interface {
	Send(*agentv1.RunRequest) error
	CloseSend() error
}

// safeSender sends one request at a time: a stream allows no more.
type safeSender struct {
	mu     sync.Mutex
	stream sender
	closed bool
}

func (s *safeSender) Send(r *agentv1.RunRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return io.EOF
	}
	return s.stream.Send(r)
}

func (s *safeSender) CloseSend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.stream.CloseSend()
}

// resize sends sizes until ctx ends or the call does.
func resize(ctx context.Context, stream sender, sizes <-chan *agentv1.TerminalSize) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok || stream.Send(&agentv1.RunRequest{Resize: size}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// feed copies stdin to the program. It returns no error if the program ends before it has read all
// of stdin.
func feed(stream sender, stdin io.Reader) error {
	buffer := make([]byte, chunk)
	for {
		n, err := stdin.Read(buffer)
		if n > 0 {
			if stream.Send(&agentv1.RunRequest{Stdin: buffer[:n]}) != nil {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			if stream.Send(&agentv1.RunRequest{StdinClosed: true}) != nil {
				return nil
			}
			return stream.CloseSend()
		}
		if err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
	}
}

type receiver interface {
	Recv() (*agentv1.RunReply, error)
}

func receive(stream receiver, s Streams) (int, error) {
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return 0, errors.New("the agent ended the call without an exit code")
		}
		if err != nil {
			return 0, err
		}
		if err := write(s.Stdout, reply.GetStdout(), "stdout"); err != nil {
			return 0, err
		}
		if err := write(s.Stderr, reply.GetStderr(), "stderr"); err != nil {
			return 0, err
		}
		if reply.GetExited() {
			return int(reply.GetExitCode()), nil
		}
	}
}

func write(w io.Writer, data []byte, name string) error {
	if w == nil || len(data) == 0 {
		return nil
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
