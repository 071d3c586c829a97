package netpol

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// uploadLimit bounds the copy of the probe into a pod.
	uploadLimit = 2 * time.Minute
	// replyMargin is the time that an answer may need in addition to the attempts.
	replyMargin = 15 * time.Second
	// maxText bounds a text that a pod has sent, in characters.
	maxText = 200
	// maxStderr bounds the errors of a command in a pod, in bytes.
	maxStderr = 4 << 10
)

// Execs runs commands in containers, through the API server.
type Execs interface {
	Stream(ctx context.Context, pod cluster.Pod, container string, command []string, s cluster.ExecStreams) (int, error)
}

// upload copies the probe into a pod. curl is in each image that smoke tests use; it writes its input into a
// file, on both systems and without a shell.
func upload(ctx context.Context, e Execs, pod cluster.Pod, system string, program io.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, uploadLimit)
	defer cancel()
	command := []string{"curl", "--silent", "--show-error", "--upload-file", "-", "--create-file-mode", "0700",
		"file://" + folderOf(system) + "/" + probeName(system)}
	if system == windows {
		command = []string{"curl.exe", "--silent", "--show-error", "--upload-file", "-",
			"file:///C:" + folder + "/" + probeName(system)}
	}
	stderr := &cluster.Head{Limit: maxStderr}
	code, err := e.Stream(ctx, pod, smoke.Container, command, cluster.ExecStreams{In: program, Out: io.Discard, Err: stderr})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s ended with exit code %d: %s; the image must have it", command[0], code,
			shortened(stderr.String()))
	}
	if err != nil {
		return fmt.Errorf("copy the probe into pod %s: %w", pod, err)
	}
	return nil
}

// session is a probe that runs in a pod.
type session struct {
	pod      cluster.Pod
	requests *io.PipeWriter
	replies  chan netprobe.Reply // is closed after the last one
	done     chan struct{}       // is closed when the command has ended and err is set
	err      error
}

// startSession runs the probe in a pod until ctx ends or stop is called.
func startSession(ctx context.Context, e Execs, pod cluster.Pod, system string) *session {
	ctx, cancel := context.WithCancelCause(ctx)
	in, requests := io.Pipe()
	out, writer := io.Pipe()
	s := &session{pod: pod, requests: requests, replies: make(chan netprobe.Reply), done: make(chan struct{})}
	command := folderOf(system) + "/" + probeName(system)
	if system == windows {
		command = `C:\swdt\` + probeName(system)
	}
	go func() {
		defer close(s.done)
		stderr := &cluster.Head{Limit: maxStderr}
		code, err := e.Stream(ctx, pod, smoke.Container, []string{command},
			cluster.ExecStreams{In: in, Out: writer, Err: stderr})
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err == nil {
			err = fmt.Errorf("it ended with exit code %d: %s", code, shortened(stderr.String()))
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
func (s *session) read(ctx context.Context, out io.Reader) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, 64<<10), netprobe.MaxLine)
	for lines.Scan() {
		var reply netprobe.Reply
		if err := json.Unmarshal(lines.Bytes(), &reply); err != nil {
			reply = netprobe.Reply{Version: netprobe.Version, Error: "the answer is no document: " + shortened(err.Error())}
		}
		select {
		case s.replies <- reply:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return lines.Err()
}

// stop ends the probe, by the end of its input.
func (s *session) stop() { _ = s.requests.Close() }

// ask sends a request and returns the reply. limit bounds both.
func (s *session) ask(ctx context.Context, r netprobe.Request, limit time.Duration) (netprobe.Reply, error) {
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
		s.stop() // ends the goroutine, and the probe, whose next reply would be that of this request
		return netprobe.Reply{}, fmt.Errorf("the probe in pod %s did not answer: %w", s.pod, context.Cause(ctx))
	}
}

// ended returns why the probe has ended.
func (s *session) ended(ctx context.Context) error {
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("the probe in pod %s ended its output", s.pod)
	}
}

func (s *session) check(reply netprobe.Reply) error {
	switch {
	case reply.Error != "":
		return fmt.Errorf("the probe in pod %s: %s", s.pod, shortened(reply.Error))
	case reply.Version != netprobe.Version:
		return fmt.Errorf("the probe in pod %s speaks version %d, not %d", s.pod, reply.Version, netprobe.Version)
	}
	return nil
}

// serve starts the servers of a pod, and returns their states.
func (s *session) serve(ctx context.Context, p Pod, ports []Port) ([]netprobe.Served, error) {
	wanted := &netprobe.Serve{Name: p.Name(), Address: p.Address.String()}
	for _, port := range ports {
		wanted.Ports = append(wanted.Ports, onWire(port))
	}
	reply, err := s.ask(ctx, netprobe.Request{Serve: wanted}, replyMargin)
	if err != nil {
		return nil, err
	}
	if len(reply.Served) != len(ports) {
		return nil, fmt.Errorf("the probe in pod %s answered for %d ports, not %d", s.pod, len(reply.Served), len(ports))
	}
	for i := range reply.Served {
		reply.Served[i].Error = shortened(reply.Served[i].Error)
	}
	return reply.Served, nil
}

// round makes attempts, and returns their results in the order of the targets. The pod's texts are
// checked: outcomes are known, addresses are addresses, and texts are short and printable.
func (s *session) round(ctx context.Context, targets []netprobe.Target, timeout time.Duration) (
	[]netprobe.Result, error) {
	reply, err := s.ask(ctx, netprobe.Request{Round: &netprobe.Round{TimeoutMS: timeout.Milliseconds(),
		Targets: targets}}, timeout+replyMargin)
	if err != nil {
		return nil, err
	}
	if len(reply.Results) != len(targets) {
		return nil, fmt.Errorf("the probe in pod %s answered for %d targets, not %d", s.pod, len(reply.Results),
			len(targets))
	}
	for i := range reply.Results {
		r := &reply.Results[i]
		if !slices.Contains(netprobe.Outcomes(), r.Outcome) {
			r.Outcome, r.Text = netprobe.Failed, "the outcome is unknown: "+r.Outcome
		}
		if _, err := netip.ParseAddr(r.Seen); err != nil {
			r.Seen = ""
		}
		r.Text = shortened(r.Text)
	}
	return reply.Results, nil
}

func onWire(p Port) netprobe.Port {
	return netprobe.Port{Number: p.Number, Protocol: string(p.Protocol)}
}

// shortened returns a text that a pod has sent, bounded and printable.
func shortened(text string) string {
	if len(text) > 4*maxText {
		text = text[:4*maxText]
	}
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return ui.Printable(text)
}
