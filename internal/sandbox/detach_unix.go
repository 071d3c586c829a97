//go:build unix

package sandbox

import (
	"os/exec"
	"syscall"
)

// detach lets the process outlive the terminal it was started from.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
