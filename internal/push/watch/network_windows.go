package watch

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// onNetwork reports whether other machines may change files in the folder without this
// kernel's knowledge.
func onNetwork(folder string) bool {
	volume := filepath.VolumeName(folder)
	if strings.HasPrefix(volume, `\\`) {
		return true // a share; the folders of WSL are shares too
	}
	root, err := windows.UTF16PtrFromString(volume + `\`)
	return err == nil && windows.GetDriveType(root) == windows.DRIVE_REMOTE
}
