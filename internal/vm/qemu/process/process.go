// Package process finds and ends processes that an earlier swdt has started.
//
// A number in a file proves nothing: the process may have ended, and another process may have its
// number. So a process is accepted only if its command line has a mark that no other process has,
// such as a VM's UUID. A process is ended through a handle that was opened before the mark was
// checked.
//
//   - process.go: find, end
//   - process_linux.go, process_bsd.go, process_windows.go: the system's part
//   - boot_linux.go, …: which boot of your machine this is
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
)

// Process is a running process with the expected mark.
type Process struct {
	PID    int
	handle *os.Process
	mark   []string
}

// Find returns the process with a number. It returns nil if there is no such process, or if its
// command line does not have the words of mark, one after the other.
func Find(pid int, mark ...string) *Process {
	if pid <= 1 || len(mark) == 0 {
		return nil
	}
	handle, err := os.FindProcess(pid) // on Linux a pidfd, which keeps naming the same process
	if err != nil {
		return nil
	}
	p := &Process{PID: pid, handle: handle, mark: mark}
	if !p.Alive() {
		_ = handle.Release() // an error would only leave the handle open
		return nil
	}
	return p
}

// FindAll returns this user's processes whose command lines have the words of mark, one after the other. It finds also
// a process that no file names, because the swdt that started it was killed.
func FindAll(mark ...string) (all []*Process) {
	for _, pid := range matching(mark) {
		if p := Find(pid, mark...); p != nil {
			all = append(all, p)
		}
	}
	return all
}

// Alive reports whether the process runs.
func (p *Process) Alive() bool {
	return has(arguments(p.PID), p.mark)
}

// has reports whether words occur in a row in a command line.
func has(line, words []string) bool {
	for i := 0; i+len(words) <= len(line); i++ {
		if slices.Equal(line[i:i+len(words)], words) {
			return true
		}
	}
	return false
}

// Signal sends a signal. A process that has ended is no error.
func (p *Process) Signal(s os.Signal) error {
	err := p.handle.Signal(s)
	if errors.Is(err, os.ErrProcessDone) || err != nil && !p.Alive() {
		return nil
	}
	return err
}

// Ended waits until the process has ended, at most for limit.
func (p *Process) Ended(ctx context.Context, limit time.Duration) error {
	return wait.Condition{
		Name: fmt.Sprintf("process %d to end", p.PID), Interval: 5 * time.Millisecond,
		MaxInterval: 100 * time.Millisecond, Limit: limit,
		Look: func(context.Context) error {
			switch {
			case p.Alive():
				return errors.New("it runs")
			case ending(p.PID):
				return errors.New("it has not closed its files")
			}
			return nil
		},
	}.Wait(ctx)
}

// endingLimit bounds the wait for a process that is ending. The system closes its files in
// milliseconds.
const endingLimit = 10 * time.Second

// AwaitEnding waits while the process with a number is ending. Such a process has no command line
// any more, so Find does not find it, but its files may still be open and locked. AwaitEnding only
// waits, so if another process has this number, that costs time and nothing else.
func AwaitEnding(ctx context.Context, pid int) error {
	if pid <= 1 {
		return nil
	}
	return wait.Condition{
		Name: fmt.Sprintf("process %d to end", pid), Interval: 5 * time.Millisecond,
		MaxInterval: 100 * time.Millisecond, Limit: endingLimit,
		Look: func(context.Context) error {
			if ending(pid) {
				return errors.New("it has not closed its files")
			}
			return nil
		},
	}.Wait(ctx)
}
