package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/swdt-dev/swdt/internal/wait/lifetime"
)

// process is a child process.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string
	ended context.Context // done when the process has ended

	killed atomic.Bool // by kill: its end is no failure
}

// startProcess starts a program and writes its output to a file. The process is killed when running
// ends.
func startProcess(running context.Context, name, path string, args []string, log string) (*process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer output.Close()
	cmd := exec.CommandContext(running, path, args...)
	cmd.Stdout, cmd.Stderr = output, output
	lifetime.EndWith(cmd, syscall.SIGKILL)
	ended, end := context.WithCancel(context.Background())
	p := &process{name: name, cmd: cmd, log: log, ended: ended}
	started := make(chan error)
	go func() {
		// The kernel kills the process when the thread that started it ends (see lifetime.EndWith), so
		// that thread must not end before the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer end()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the exit state is in cmd.ProcessState
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill kills the process, and returns when it has ended.
func (p *process) kill(ctx context.Context) error {
	p.killed.Store(true)
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s (process %d): %w", p.name, p.pid(), err)
	}
	select {
	case <-p.ended.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of %s (process %d): %w", p.name, p.pid(), ctx.Err())
	}
}

// exitError returns an error with the exit state and the last lines of a process that ended by itself.
func (p *process) exitError() error {
	return fmt.Errorf("%s ended (%s); the end of its log %s:\n%s", p.name, p.cmd.ProcessState,
		p.log, lastLines(p.log))
}
