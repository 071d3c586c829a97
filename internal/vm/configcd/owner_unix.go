//go:build unix

package configcd

import (
	"io/fs"
	"os"
	"syscall"
)

// ownFolder reports whether a folder belongs to this user or to root. If swdt runs as root, it
// returns true for every folder, since root may write anywhere, for example into the folder of the
// user who called sudo.
func ownFolder(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	user := os.Geteuid()
	return ok && (user == 0 || stat.Uid == 0 || int(stat.Uid) == user)
}
