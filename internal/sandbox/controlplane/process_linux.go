package controlplane

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill the process when the thread that started it ends, for
// whatever reason.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
