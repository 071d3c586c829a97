package sandbox

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// detach lets the process outlive the console it was started from.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP,
	}
}
