// Package thismachine is the way to the node on which the program itself runs. A HostProcess pod of a
// fleet uses it: its processes are processes of the node, so it needs neither SSH nor the API server to
// start the agent.
//
//   - thismachine.go: the way and its connection; process.go: programs; stage.go: the agent's file
package thismachine

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"sync"

	"github.com/swdt-dev/swdt/internal/node/carrier"
)

// SystemProfile is the profile of SYSTEM, in which only SYSTEM and administrators can write.
const SystemProfile = `C:\Windows\System32\config\systemprofile`

// Way leads to this machine. It implements carrier.Way.
type Way struct {
	// Folder is the folder in which the agent waits for its installation. No ordinary user of the
	// machine may write there.
	Folder string
}

// Destination implements carrier.Way.
func (w Way) Destination() string { return "this machine" }

// Names implements carrier.Way.
func (w Way) Names() []string { return nil }

// Leave implements carrier.Way. Nothing is left.
func (w Way) Leave(context.Context) {}

// Connect implements carrier.Way.
func (w Way) Connect(context.Context) (carrier.Connection, error) {
	c := &connection{way: w, closed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// connection is a group of programs that end together.
type connection struct {
	way    Way
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	once    sync.Once
	running sync.WaitGroup
	closed  chan struct{}
}

func (c *connection) Address() string { return c.way.Destination() }

// Machine implements carrier.Connection. A later program could run after Windows was installed again.
func (c *connection) Machine() (identity string, lasting bool) { return c.way.Destination(), false }

func (c *connection) Done() <-chan struct{} { return c.closed }

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
		c.running.Wait()
		close(c.closed)
	})
	return nil
}

// Start implements carrier.Connection.
func (c *connection) Start(_ context.Context, program string, args ...string) (carrier.Process, error) {
	if c.ctx.Err() != nil {
		return nil, c.Err()
	}
	return c.start(program, args)
}

// Run implements carrier.Connection.
func (c *connection) Run(ctx context.Context, program string, args ...string) (carrier.Output, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		return carrier.Output{}, errors.Join(ctx.Err(), err)
	}
	return carrier.Output{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: cmd.ProcessState.ExitCode()}, nil
}

// Stage implements carrier.Connection.
func (c *connection) Stage(context.Context, *carrier.FailedStart) (carrier.Stage, error) {
	return &stage{folder: c.way.Folder}, nil
}
