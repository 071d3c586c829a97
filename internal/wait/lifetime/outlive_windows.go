package lifetime

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// Outlive makes a program outlive swdt and its console.
func Outlive(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP,
	}
}
