package process

import (
	"os"
	"strings"
)

// BootID identifies this boot of your machine; empty if that is not known.
func BootID() string { return kernel("random/boot_id") }

// KernelRelease returns the version of your machine's kernel; empty if that is not known.
func KernelRelease() string { return kernel("osrelease") }

func kernel(setting string) string {
	content, err := os.ReadFile("/proc/sys/kernel/" + setting)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
