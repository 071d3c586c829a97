package watch

import "golang.org/x/sys/unix"

// onNetwork reports whether other machines may change files in the folder without this
// kernel's knowledge.
func onNetwork(folder string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(folder, &stat) == nil && stat.Flags&unix.MNT_LOCAL == 0
}
