package lifetime

import (
	"os/exec"
	"syscall"
)

// EndWith makes the kernel send a signal to the program when the thread that started it ends, for whatever
// reason. Other systems have no such thing.
func EndWith(cmd *exec.Cmd, signal syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = signal
}
