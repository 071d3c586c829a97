//go:build !windows

package suite

import (
	"os/exec"
	"syscall"
)

// separate gives the process a group of its own, so that Ctrl-C in the terminal reaches swdt alone,
// which then ends the process.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
}

func (c *child) interrupt() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT) }
func (c *child) kill()      { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }
