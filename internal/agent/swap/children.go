package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// children are the processes below a service's own process that run one of the
// components' binaries, such as a kubelet under kube-log-runner or nssm. When a
// service manager reports "stopped", it refers to the wrapper; the children may
// still run.
type children struct {
	handles []platform.ProcessHandle
}

// pinChildren finds the children while the service still runs.
func (t *transaction) pinChildren(ctx context.Context, service string) (*children, error) {
	status, err := t.Platform.Services.Status(ctx, service)
	if err != nil {
		return nil, err
	}
	c := &children{}
	if status.PID == 0 || status.SharedProcess {
		return c, nil
	}
	processes, err := t.Platform.Processes.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	below := descendants(processes, status.PID)
	for _, p := range processes {
		if p.PID == status.PID || !below[p.PID] || !t.isDestination(p.Image) {
			continue
		}
		handle, err := t.Platform.Processes.Open(p.PID)
		if errors.Is(err, fault.ErrNotExist) {
			continue
		}
		if err != nil {
			c.close()
			return nil, fmt.Errorf("watch process %d (%s): %w", p.PID, p.Name, err)
		}
		c.handles = append(c.handles, handle)
	}
	return c, nil
}

// descendants returns a process and all processes that it started, directly or through others. A process that is older
// than its parent had another parent, whose PID is in use again: any account may have such a process.
func descendants(processes []platform.Process, pid uint32) map[uint32]bool {
	started := map[uint32]time.Time{}
	for _, p := range processes {
		started[p.PID] = p.Started
	}
	below := map[uint32]bool{pid: true}
	for range processes { // a parent may follow its child in the list
		grown := false
		for _, p := range processes {
			if below[p.ParentPID] && !below[p.PID] && p.PID != 0 && !p.Started.Before(started[p.ParentPID]) {
				below[p.PID], grown = true, true
			}
		}
		if !grown {
			break
		}
	}
	return below
}

func (t *transaction) isDestination(image string) bool {
	for _, c := range t.plan.Components {
		if sameFile(t.Platform.Files, c.Destination, image) {
			return true
		}
	}
	return false
}

// end waits until all children have ended. It kills the children that still run after the timeout.
func (c *children) end(ctx context.Context, timeout time.Duration) error {
	patient, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, handle := range c.handles {
		if handle.Wait(patient) == nil {
			continue
		}
		if err := handle.Kill(); err != nil {
			return fmt.Errorf("end a process that the service left behind: %w", err)
		}
		if err := handle.Wait(ctx); err != nil {
			return fmt.Errorf("wait for a process that the service left behind: %w", err)
		}
	}
	return nil
}

func (c *children) close() {
	for _, handle := range c.handles {
		_ = handle.Close()
	}
}
