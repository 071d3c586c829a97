package golden

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/vm/configcd"
	"github.com/swdt-dev/swdt/internal/vm/media"
)

// wantedDrivers returns the names of the virtio-win drivers for the devices that swdt's VMs have or
// may get.
func wantedDrivers() []string {
	return []string{"viostor", "vioscsi", "netkvm", "vioserial", "balloon", "viorng", "pvpanic", "qemupciserial"}
}

// agentPath is the path on virtio-win of the installer of QEMU's guest agent.
const agentPath = "guest-agent/qemu-ga-x86_64.msi"

// addDrivers adds to the CD the drivers that a virtio-win ISO has for a version of Windows, and the
// guest agent if the ISO has one. The file must stay open until the CD is written.
func addDrivers(cd *configcd.Options, file *os.File, version string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	disc, err := media.Open(file, info.Size())
	if err != nil {
		return err
	}
	if err := disc.Whole(); err != nil {
		return err
	}
	found, err := media.Drivers(disc, version)
	if err != nil {
		return err
	}
	var roots []string
	for _, folder := range found {
		if slices.Contains(wantedDrivers(), strings.ToLower(folder.Driver)) {
			roots = append(roots, folder.Path)
		}
	}
	if len(roots) == 0 {
		return fmt.Errorf("the ISO has none of the drivers %s for %s", strings.Join(wantedDrivers(), ", "), version)
	}
	cd.Drivers = branches{FS: disc, roots: roots}
	if info, err := fs.Stat(disc, agentPath); err == nil && info.Mode().IsRegular() {
		cd.Agent = configcd.File{FS: disc, Path: agentPath}
	}
	return nil
}

// branches is a file system that shows only some folders of another file system, and the folders on
// the way to them.
type branches struct {
	fs.FS
	roots []string
}

// shows reports whether a path is in, or leads to, one of the folders.
func (b branches) shows(name string) bool {
	return name == "." || slices.ContainsFunc(b.roots, func(root string) bool {
		return name == root || strings.HasPrefix(name, root+"/") || strings.HasPrefix(root, name+"/")
	})
}

// Open opens a file or folder that is shown.
func (b branches) Open(name string) (fs.File, error) {
	if !b.shows(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return b.FS.Open(name)
}

// ReadDir lists the entries of a folder that are shown.
func (b branches) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(b.FS, name)
	hidden := func(entry fs.DirEntry) bool { return !b.shows(path.Join(name, entry.Name())) }
	return slices.DeleteFunc(all, hidden), err
}

// fileOf returns the configcd.File for a file of your machine.
func fileOf(name string) configcd.File {
	return configcd.File{FS: os.DirFS(filepath.Dir(name)), Path: filepath.Base(name)}
}
