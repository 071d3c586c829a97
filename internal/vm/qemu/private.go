package qemu

import (
	"fmt"
	"os"
	"runtime"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
)

// private returns an error unless a folder belongs to this user and no other user has access.
func private(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !localfile.ModesMatter {
		return err
	}
	owner, known := localfile.Owner(info)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder; remove it", path)
	case !known || owner != os.Getuid():
		return fmt.Errorf("%s belongs to another user; remove it", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("other users have access to %s; `chmod 700` it", path)
	}
	return nil
}

// supported returns an ErrUnsupported if the driver cannot run VMs on this system.
func supported(action string) error {
	if runtime.GOOS == "windows" {
		return vm.Unsupported(Name+" on Windows", action)
	}
	return nil
}

// allocated returns how many bytes a file takes on the disk; 0 if that is not known.
func allocated(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return localfile.Allocated(info)
}
