package thismachine

import (
	"context"
	"fmt"
	"io"
	"os/exec"

	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/node/carrier"
)

// stderrKept is the number of bytes of a program's stderr that are kept.
const stderrKept = 64 << 10

// process is a program of this machine. It implements carrier.Process.
type process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	stdin  io.WriteCloser
	stdout *io.PipeReader
	stderr *bounded.Tail
	done   chan struct{}
	err    error // valid once done is closed
}

func (c *connection) start(program string, args []string) (carrier.Process, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	p := &process{cmd: exec.CommandContext(ctx, program, args...), cancel: cancel, stderr: &bounded.Tail{Most: stderrKept},
		done: make(chan struct{})}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	var out *io.PipeWriter
	p.stdin = stdin
	p.stdout, out = io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = out, p.stderr
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	c.running.Go(func() {
		defer cancel()
		p.err = p.cmd.Wait()
		out.Close()
		close(p.done)
	})
	return p, nil
}

func (p *process) Input() io.WriteCloser { return p.stdin }
func (p *process) Output() io.Reader     { return p.stdout }
func (p *process) Stderr() string        { return p.stderr.String() }
func (p *process) Done() <-chan struct{} { return p.done }

// ExitCode implements carrier.Process.
func (p *process) ExitCode(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		return -1, ctx.Err()
	}
	if code := p.cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return -1, p.err
}

// Close implements carrier.Process. The agent ends with its stdin.
func (p *process) Close() error {
	err := p.stdin.Close()
	p.stdout.Close()
	return err
}
