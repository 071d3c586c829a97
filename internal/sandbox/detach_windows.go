package sandbox

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// detach makes the process outlive the console that it is started from.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP,
	}
}
