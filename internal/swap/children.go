package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
)

// children are processes below a service's own that run one of the components'
// binaries: a kubelet under kube-log-runner or nssm. A service manager that says
// stopped speaks of the wrapper; these may live on.
type children struct {
	handles []host.ProcessHandle
}

// pinChildren finds them while the service still runs.
func (t *transaction) pinChildren(ctx context.Context, service string) (*children, error) {
	status, err := t.Host.Services.Status(ctx, service)
	if err != nil {
		return nil, err
	}
	c := &children{}
	if status.PID == 0 || status.SharedProcess {
		return c, nil
	}
	processes, err := t.Host.Processes.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	below := descendants(processes, status.PID)
	for _, p := range processes {
		if p.PID == status.PID || !below[p.PID] || !t.isDestination(p.Image) {
			continue
		}
		handle, err := t.Host.Processes.Open(p.PID)
		if errors.Is(err, host.ErrNotExist) {
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

// descendants is a process and all that it started, directly or not.
func descendants(processes []host.Process, pid uint32) map[uint32]bool {
	below := map[uint32]bool{pid: true}
	for range processes { // a parent may stand after its child in the list
		grown := false
		for _, p := range processes {
			if below[p.ParentPID] && !below[p.PID] && p.PID != 0 {
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
		if samePath(c.Destination, image) {
			return true
		}
	}
	return false
}

// end waits until all of them are gone; what outlives the timeout is ended.
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
