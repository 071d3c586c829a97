package probepod

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// ReplyMargin is the time that an answer may need in addition to the work that it is about.
	ReplyMargin = 15 * time.Second
	// maxText bounds a text that a pod has sent, in characters.
	maxText = 200
)

// Session is a probe that runs in a pod.
type Session struct {
	pod      cluster.Pod
	requests *io.PipeWriter
	replies  chan netprobe.Reply // is closed after the last one
	done     chan struct{}       // is closed when the command has ended and err is set
	err      error
}

// EndedError reports that the probe's process has ended although its input had not.
type EndedError struct {
	Code   int
	Stderr string
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("it ended with exit code %d: %s", e.Code, e.Stderr)
}

// Start runs the probe in a pod until ctx ends or Stop is called.
func Start(ctx context.Context, e Execs, pod cluster.Pod, at Place) *Session {
	ctx, cancel := context.WithCancelCause(ctx)
	in, requests := io.Pipe()
	out, writer := io.Pipe()
	s := &Session{pod: pod, requests: requests, replies: make(chan netprobe.Reply), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		stderr := &cluster.Head{Limit: maxStderr}
		code, err := e.Stream(ctx, pod, smoke.Container, []string{at.program()},
			cluster.ExecStreams{In: in, Out: writer, Err: stderr})
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err == nil {
			err = &EndedError{Code: code, Stderr: Shortened(stderr.String())}
		}
		s.err = fmt.Errorf("the probe in pod %s: %w", pod, err)
		_ = in.CloseWithError(s.err) // ends a request that is being written
		_ = writer.Close()
	}()
	go func() {
		defer close(s.replies)
		if err := s.read(ctx, out); err != nil {
			cancel(err) // ends the command
		}
		_ = out.CloseWithError(errors.New("the answers are not read any more"))
	}()
	return s
}

// read reads the replies until the command ends. A line that is no reply is an error of the pod, and so is a
// line that is too long, which read returns.
func (s *Session) read(ctx context.Context, out io.Reader) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, 64<<10), netprobe.MaxLine)
	for lines.Scan() {
		var reply netprobe.Reply
		if err := json.Unmarshal(lines.Bytes(), &reply); err != nil {
			reply = netprobe.Reply{Version: netprobe.Version, Error: "the answer is no document: " + Shortened(err.Error())}
		}
		select {
		case s.replies <- reply:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return lines.Err()
}

// Stop ends the probe, by the end of its input.
func (s *Session) Stop() { _ = s.requests.Close() }

// Ask sends a request and returns the reply. limit bounds both. The error wraps an *EndedError if the probe's
// process ended instead.
func (s *Session) Ask(ctx context.Context, r netprobe.Request, limit time.Duration) (netprobe.Reply, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return netprobe.Reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	written := make(chan error, 1)
	go func() {
		_, err := s.requests.Write(append(text, '\n'))
		written <- err
	}()
	select {
	case reply, ok := <-s.replies:
		if !ok {
			return netprobe.Reply{}, s.ended(ctx)
		}
		<-written
		return reply, s.check(reply)
	case <-ctx.Done():
		s.Stop() // ends the goroutine, and the probe, whose next reply would be that of this request
		return netprobe.Reply{}, fmt.Errorf("the probe in pod %s did not answer: %w", s.pod, context.Cause(ctx))
	}
}

// ended returns why the probe has ended.
func (s *Session) ended(ctx context.Context) error {
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("the probe in pod %s ended its output", s.pod)
	}
}

func (s *Session) check(reply netprobe.Reply) error {
	switch {
	case reply.Error != "":
		return fmt.Errorf("the probe in pod %s: %s", s.pod, Shortened(reply.Error))
	case reply.Version != netprobe.Version:
		return fmt.Errorf("the probe in pod %s speaks version %d, not %d", s.pod, reply.Version, netprobe.Version)
	}
	return nil
}

// Shortened returns a text that a pod has sent, bounded and printable.
func Shortened(text string) string {
	if len(text) > 4*maxText {
		text = text[:4*maxText]
	}
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return ui.Printable(text)
}
