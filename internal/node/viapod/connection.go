package viapod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node/carrier"
)

const (
	stderrKept = 64 << 10
	outputKept = 1 << 20
	maxOutput  = 16 << 20
	// closeLimit bounds the wait for the streams to end when the connection is closed.
	closeLimit = 3 * time.Second
)

// connection is a pod in which programs run. Each program has its own stream through the API server.
type connection struct {
	way *Way
	pod *record

	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	running sync.WaitGroup
	closed  chan struct{}
	once    sync.Once
}

func newConnection(w *Way, pod *record) *connection {
	c := &connection{way: w, pod: pod, closed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Address implements carrier.Connection.
func (c *connection) Address() string { return c.way.Destination() }

// Machine implements carrier.Connection. A container that runs belongs to one start of one Windows. Nothing
// else proves that a Node is still the same machine.
func (c *connection) Machine() (identity string, lasting bool) {
	if c.pod.Container == "" {
		return "", false
	}
	return "container " + c.pod.UID + " " + c.pod.Container, c.pod.Keep
}

// Done implements carrier.Connection.
func (c *connection) Done() <-chan struct{} { return c.closed }

// Err implements carrier.Connection.
func (c *connection) Err() error {
	select {
	case <-c.closed:
		return errors.New("it is closed")
	default:
		return nil
	}
}

// Close implements carrier.Connection.
func (c *connection) Close() error {
	c.once.Do(func() {
		c.cancel()
		ended := make(chan struct{})
		go func() {
			c.running.Wait()
			close(ended)
		}()
		limit := time.NewTimer(closeLimit)
		defer limit.Stop()
		select {
		case <-ended:
		case <-limit.C:
		}
		close(c.closed)
	})
	return nil
}

// Start implements carrier.Connection. Whether the program has started is known only when it answers: the
// error of a start that fails is the error of the program's output.
func (c *connection) Start(_ context.Context, program string, args ...string) (carrier.Process, error) {
	if c.ctx.Err() != nil {
		return nil, c.Err()
	}
	p := newProcess(c, append([]string{program}, args...))
	c.running.Go(p.run)
	return p, nil
}

// Run implements carrier.Connection.
func (c *connection) Run(ctx context.Context, program string, args ...string) (carrier.Output, error) {
	p, err := c.Start(ctx, program, args...)
	if err != nil {
		return carrier.Output{}, err
	}
	defer p.Close()
	p.Input().Close()
	return finish(ctx, p)
}

// finish reads a program's output until the program ends. A program that prints more than maxOutput is ended: the
// programs that swdt runs here print a few lines.
func finish(ctx context.Context, p carrier.Process) (carrier.Output, error) {
	stdout := &bounded.Tail{Most: outputKept}
	copied := make(chan struct{})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		defer close(copied)
		n, _ := io.Copy(stdout, io.LimitReader(p.Output(), maxOutput)) // ExitCode returns the error
		if n == maxOutput {
			cancel(errTooMuch)
			p.Close()
		}
	}()
	code, err := p.ExitCode(ctx)
	if err != nil {
		return carrier.Output{}, cmp.Or(context.Cause(ctx), err)
	}
	select {
	case <-copied:
	case <-ctx.Done():
		return carrier.Output{}, context.Cause(ctx)
	}
	return carrier.Output{Stdout: windowstext.Console(stdout.Bytes()), Stderr: p.Stderr(), ExitCode: code}, nil
}

var errTooMuch = fmt.Errorf("the program in the pod prints more than %d MiB", maxOutput>>20)

// process is a program in the pod.
type process struct {
	c       *connection
	command []string
	ctx     context.Context
	cancel  context.CancelFunc

	in     *io.PipeReader // what the program reads
	stdin  *io.PipeWriter
	out    *io.PipeWriter // what the program writes
	stdout *io.PipeReader
	stderr *bounded.Tail

	done chan struct{}
	code int
	err  error // valid once done is closed
}

func newProcess(c *connection, command []string) *process {
	p := &process{c: c, command: command, stderr: &bounded.Tail{Most: stderrKept}, done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(c.ctx)
	p.in, p.stdin = io.Pipe()
	p.stdout, p.out = io.Pipe()
	return p
}

// run carries the program's streams until it ends.
func (p *process) run() {
	defer close(p.done)
	defer p.cancel()
	code, err := p.c.way.c.Stream(p.ctx, cluster.Pod{Namespace: p.c.pod.Namespace, Name: p.c.pod.Pod}, container,
		p.command, cluster.ExecStreams{In: p.in, Out: p.out, Err: p.stderr})
	err = asDenied(err, p.c.way.o.Namespace)
	if p.ctx.Err() != nil && err != nil {
		err = fmt.Errorf("%s: the stream was closed: %w", p.command[0], err)
	}
	p.code, p.err = code, err
	p.in.CloseWithError(io.ErrClosedPipe)
	if err == nil {
		err = io.EOF
	}
	p.out.CloseWithError(err)
}

func (p *process) Input() io.WriteCloser { return p.stdin }
func (p *process) Output() io.Reader     { return p.stdout }
func (p *process) Done() <-chan struct{} { return p.done }

// Stderr implements carrier.Process. If the cluster has ended the stream, its reason is the last line.
func (p *process) Stderr() string {
	text := windowstext.Console(p.stderr.Bytes())
	select {
	case <-p.done:
		if p.err != nil {
			text += "\n" + p.err.Error()
		}
	default:
	}
	return text
}

// ExitCode implements carrier.Process.
func (p *process) ExitCode(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		select {
		case <-p.done:
		default:
			return -1, ctx.Err()
		}
	}
	if p.err != nil {
		return -1, p.err
	}
	return p.code, nil
}

// Close implements carrier.Process.
func (p *process) Close() error {
	p.cancel()
	p.stdin.Close()
	p.stdout.Close()
	return nil
}
