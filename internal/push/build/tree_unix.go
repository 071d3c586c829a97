//go:build unix

package build

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// grace is how long a cancelled command may take to end by itself.
const grace = 300 * time.Millisecond

func shell(line string) *exec.Cmd { return exec.Command("sh", "-c", line) }

// runTree runs the command in a new process group. When ctx ends, runTree interrupts the group, so
// that go build can clean up, and kills the group after grace at the latest.
func runTree(ctx context.Context, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	group := -cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGINT) // Kill fails only if the group has just ended
	timer := time.NewTimer(grace)
	defer timer.Stop()
	var err error
	select {
	case err = <-ended:
		ended <- err
	case <-timer.C:
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	return <-ended
}
