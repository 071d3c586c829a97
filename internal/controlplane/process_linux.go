package controlplane

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel kill the process when the thread that started it
// ends, however that comes about.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
