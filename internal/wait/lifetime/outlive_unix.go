//go:build unix

package lifetime

import (
	"os/exec"
	"syscall"
)

// Outlive makes a program outlive swdt and its terminal: it starts in a session of its own.
func Outlive(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
