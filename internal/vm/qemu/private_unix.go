//go:build unix

package qemu

import (
	"fmt"
	"os"
	"syscall"
)

// private returns an error unless a folder belongs to this user and no other user has access.
func private(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder; remove it", path)
	case !known || int(owner.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to another user; remove it", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("other users have access to %s; `chmod 700` it", path)
	}
	return nil
}

// supported returns nil: the driver can run VMs on this system.
func supported(string) error { return nil }
