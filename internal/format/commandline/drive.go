package commandline

import "strings"

// OnDrive returns a path as kubelet and containerd resolve it: either slash is allowed, and a path without a drive is on
// drive C:.
func OnDrive(path string) string {
	path = strings.ReplaceAll(strings.TrimSpace(path), "/", `\`)
	if strings.HasPrefix(path, `\`) && !strings.HasPrefix(path, `\\`) {
		return "C:" + path
	}
	return path
}
