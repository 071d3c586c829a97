//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// Detach makes a program outlive swdt and its terminal: it starts in a session of its own.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
