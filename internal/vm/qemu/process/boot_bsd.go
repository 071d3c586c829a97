//go:build unix && !linux

package process

import "golang.org/x/sys/unix"

// BootID identifies this boot of your machine; empty if that is not known.
func BootID() string { return setting("kern.bootsessionuuid") }

// KernelRelease returns the version of your machine's kernel; empty if that is not known.
func KernelRelease() string { return setting("kern.osrelease") }

func setting(name string) string {
	value, err := unix.Sysctl(name)
	if err != nil {
		return ""
	}
	return value
}
