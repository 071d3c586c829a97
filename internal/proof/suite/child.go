package suite

import (
	"os/exec"
	"runtime"
	"time"
)

// child is a running process, with all processes that it has started.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

// start starts a process that ends with swdt: if swdt is killed, Linux asks the process to end, so that
// it still removes its namespaces.
func start(cmd *exec.Cmd) (*child, error) {
	separate(cmd)
	c := &child{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux signals the process when the thread that started it ends, so that thread must live as
		// long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the exit state is in cmd.ProcessState
			close(c.ended)
		}
	}()
	return c, <-started
}

// stop asks the process to end, and kills it if it has not ended within the time.
func (c *child) stop(grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	c.interrupt()
	select {
	case <-c.ended:
	case <-timer.C:
		c.kill()
		<-c.ended
	}
}
