package configcd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// others are the bits of a mode that let other users write.
const others fs.FileMode = 0o022

// checkFolder returns an error if another user can write to the folder of a file: that user could
// replace the answer file, and would then control the guest.
func checkFolder(path string) error {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder; choose another place", folder)
	case !localfile.ModesMatter:
		return nil // on Windows, an access list protects a folder of the user's profile
	case info.Mode()&others != 0:
		return fmt.Errorf("other users can write the folder %s (mode %o); run `chmod go-w %s`", folder,
			info.Mode().Perm(), folder)
	case !ownFolder(info):
		return fmt.Errorf("the folder %s belongs to another user; choose one of yours", folder)
	}
	return nil
}

// ownFolder reports whether a folder belongs to this user or to root. If swdt runs as root, it
// returns true for every folder, since root may write anywhere, for example into the folder of the
// user who called sudo.
func ownFolder(info fs.FileInfo) bool {
	owner, known := localfile.Owner(info)
	user := os.Geteuid()
	return known && (user == 0 || owner == 0 || owner == user)
}
