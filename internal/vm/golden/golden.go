// Package golden makes and keeps golden images. A golden image is a disk with an installed and
// generalised Windows, made once from a user's ISO. The disks of any number of VMs can be laid over
// it.
//
// An image has a key, the hash of everything that went into the image. So a node file selects its
// image by describing it: another ISO, edition, driver, script or time zone gives another image. An
// image is a folder, which appears complete by one rename and is never changed afterwards:
//
//	KEY/golden.qcow2, vars.qcow2    the disk and the firmware's variables (of the driver qemu)
//	KEY/manifest.json               what the image was made from, and how long each stage took
//	.build-KEY/                     the VM of a build that runs or was killed
//	.failed-KEY/                    the screen and the serial port of the last failed build
//	.locks/KEY                      the lock of an image: one swdt at a time works on the image
//	hashes.json                     hashes of ISOs, by path, size and time
//
// A build that was killed leaves its VM running. The next build of the same key, and Remove, end
// that VM and remove it.
//
//   - golden.go: the folder of images
//   - manifest.go: the record of an image
//   - recipe.go, supplies.go, hashes.go: what goes into an image, and its key
//   - build.go, guest.go: the build
//   - plan.go: what a build would do
//   - failure.go: a build that failed
//   - firststart.go: a new VM that is laid over an image
//   - list.go: list and remove images
//   - report.go: results of commands
//   - lock.go: one swdt at a time
//
// # Trust
//
// swdt uses the folder of images only if no other user can write to it, since a user who can change
// an image controls the VMs that are laid over the image. The guest of a build is hostile: swdt
// bounds what the guest sends to the serial port, makes it printable, and takes it as a sign of
// progress only. The Administrator's password of a build is random and never shown, and the CD with
// the password is wiped when the build ends.
package golden

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Images are the golden images of a user.
type Images struct {
	root     string
	machines *vm.Machines
	bounds   Options
}

// Open returns the images in a folder, which it makes if the folder is missing. If root is empty,
// the folder is $XDG_CACHE_HOME/swdt/images.
func Open(root string, machines *vm.Machines) (*Images, error) {
	if root == "" {
		cache, err := localfile.CacheFolder()
		if err != nil {
			return nil, err
		}
		root = filepath.Join(cache, "swdt", "images")
	}
	root, err := vm.OwnFolder(root)
	if err != nil {
		return nil, fmt.Errorf("open the folder of golden images: %w", err)
	}
	return &Images{root: root, machines: machines}, nil
}

func (s *Images) folder(key string) string       { return filepath.Join(s.root, key) }
func (s *Images) buildFolder(key string) string  { return filepath.Join(s.root, buildPrefix+key) }
func (s *Images) failedFolder(key string) string { return filepath.Join(s.root, failedPrefix+key) }

// Prefixes of folders that are not images. No key begins with a dot.
const (
	buildPrefix  = ".build-"
	failedPrefix = ".failed-"
	newPrefix    = ".new"
	gonePrefix   = ".gone-"
)

// privateFolder makes a folder, if it is missing, and allows only this user to enter it.
func privateFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, 0o700) //nolint:gosec // a folder
}
