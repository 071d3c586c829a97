package swap

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/program"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
)

// wrapped is a component's program below the process of a wrapper, which goes on after the program's end.
type wrapped struct {
	process platform.Process // the first that was seen; PID 0: none yet
	at      time.Time        // when it was seen
	must    bool             // the wrapper is known to start this program, so it must appear
}

// wrappedProgram returns the program of a component whose service a wrapper runs; nil: the service's own
// process runs the program.
func (t *transaction) wrappedProgram(ctx context.Context, c Component) (*wrapped, error) {
	if c.Destination == "" {
		return nil, nil
	}
	config, err := t.Platform.Services.Config(ctx, c.Service)
	if err != nil {
		return nil, fmt.Errorf("read the registration of service %s: %w", c.Service, err)
	}
	command := program.Of(t.Platform, config)
	if len(command.Wrappers) == 0 {
		return nil, nil
	}
	return &wrapped{must: sameFile(t.Platform.Files, c.Destination, command.Program())}, nil
}

// since returns the time from which the program counts as running: that at which it was seen first. If it
// does not run yet, or has ended, the error is one for a wait.Condition. started is the wrapper's process.
func (w *wrapped) since(ctx context.Context, t *transaction, c Component, started startedService) (time.Time, error) {
	processes, err := t.Platform.Processes.List(ctx)
	if err != nil {
		return time.Time{}, wait.Stop(fmt.Errorf("list the processes: %w", err))
	}
	same := func(p platform.Process) bool { return p.PID == w.process.PID && p.Started.Equal(w.process.Started) }
	switch {
	case w.process.PID == 0 && w.find(t, c, processes, started.pid), slices.ContainsFunc(processes, same):
		return w.at, nil
	case w.process.PID != 0:
		return time.Time{}, wait.Stop(fmt.Errorf("%s ended within %s of its start, and service %s, which started it, goes on",
			c.Destination, time.Since(w.process.Started).Round(10*time.Millisecond), c.Service))
	case !w.must: // a script may start it at any time
		return started.at, nil
	case time.Since(started.at) > max(c.StartTimeout, c.Settle):
		return time.Time{}, wait.Stop(fmt.Errorf("service %s runs, and %s, which it starts, does not", c.Service, c.Destination))
	}
	return time.Time{}, fmt.Errorf("%s does not run yet", c.Destination)
}

// find finds the program among the processes below the wrapper's.
func (w *wrapped) find(t *transaction, c Component, processes []platform.Process, pid uint32) bool {
	below := descendants(processes, pid)
	for _, p := range processes {
		if below[p.PID] && p.Image != "" && sameFile(t.Platform.Files, c.Destination, p.Image) {
			w.process, w.at = p, time.Now()
			return true
		}
	}
	return false
}

// sameFile reports whether two paths lead to one file. A junction or a short name gives one file two paths.
func sameFile(files platform.Files, a, b string) bool {
	if a == "" || b == "" || samePath(a, b) {
		return a != "" && b != ""
	}
	first, err := files.Stat(a)
	if err != nil {
		return false
	}
	second, err := files.Stat(b)
	return err == nil && first.ID == second.ID
}
