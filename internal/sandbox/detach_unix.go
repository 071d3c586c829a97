//go:build unix

package sandbox

import (
	"os/exec"
	"syscall"
)

// detach makes the process outlive the terminal that it is started from.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
