//go:build !windows

package suite

import (
	"os/exec"
	"syscall"

	"github.com/swdt-dev/swdt/internal/wait/lifetime"
)

// separate gives the process a group of its own, so that Ctrl-C in the terminal reaches swdt alone,
// which then ends the process. If swdt itself ends, Linux sends SIGTERM: Ginkgo then cleans up
// after the current spec.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	lifetime.EndWith(cmd, syscall.SIGTERM)
}

func (c *child) interrupt() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT) }
func (c *child) kill()      { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }
