//go:build windows

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mountPoint is the environment variable with the root of a HostProcess container.
const mountPoint = "CONTAINER_SANDBOX_MOUNT_POINT"

// view is the root of a HostProcess container: a folder with links to the files of its image and to its mounts,
// as the runtime for Windows makes it for containerd 1.6.
type view struct {
	root  string
	links []string
}

// newView makes the view of a container.
func newView(id, image string, mounts []mount) (*view, error) {
	v := &view{root: filepath.Join(`C:\hpc`, id)}
	if err := v.fill(image, mounts); err != nil {
		return nil, errors.Join(err, v.remove())
	}
	return v, nil
}

// fill makes the links to the mounts and to the files of the image.
func (v *view) fill(image string, mounts []mount) error {
	if err := os.MkdirAll(v.root, 0o755); err != nil {
		return err
	}
	for _, mount := range mounts {
		if strings.HasPrefix(mount.Source, `\\.\`) {
			continue // a pipe has the same name in the container
		}
		at := filepath.Join(v.root, mount.Destination[len(filepath.VolumeName(mount.Destination)):])
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := v.link(onDrive(mount.Source), at); err != nil {
			return err
		}
	}
	if image == "" {
		return nil
	}
	files, err := os.ReadDir(image)
	if err != nil {
		return fmt.Errorf("read the files of the image: %w", err)
	}
	for _, file := range files {
		at := filepath.Join(v.root, file.Name())
		if _, err := os.Stat(at); err == nil {
			continue // a mount is below it
		}
		if err := v.link(filepath.Join(image, file.Name()), at); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) link(target, at string) error {
	if err := link(target, at); err != nil {
		return err
	}
	v.links = append(v.links, at)
	return nil
}

// remove removes the view. It removes links before it removes folders, so what they lead to stays.
func (v *view) remove() error {
	var all []error
	for _, at := range v.links {
		all = append(all, unlink(at))
	}
	v.links = nil
	if err := errors.Join(all...); err != nil {
		return err // to remove the folder would remove what a link leads to
	}
	return os.RemoveAll(v.root)
}

// expand replaces the variable with the root of the view, in the forms of cmd and PowerShell.
func (v *view) expand(text string) string {
	return strings.NewReplacer("%"+mountPoint+"%", v.root, "$env:"+mountPoint, v.root).Replace(text)
}
