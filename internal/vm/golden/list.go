package golden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/vm"
)

// keys returns the keys of the folders with a prefix.
func (s *Images) keys(prefix string) (all []string) {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		key, ok := strings.CutPrefix(entry.Name(), prefix)
		if ok && isKey(key) && entry.IsDir() {
			all = append(all, key)
		}
	}
	return all
}

// List returns all images, including the images whose builds run, were interrupted or have failed.
func (s *Images) List(context.Context) (List, error) {
	users, damaged := s.machines.Users()
	list := List{Images: []Image{}}
	for _, key := range s.keys("") {
		image := Image{Key: key, State: Ready, Folder: s.folder(key), UsedBy: namesOf(users[key])}
		m, err := s.get(key)
		if err != nil {
			image.State, image.Reason = Damaged, err.Error()
		}
		if damaged != nil && image.Reason == "" {
			image.Reason = fmt.Sprintf("the VMs that use it are not known: %v", damaged)
		}
		image.fill(m)
		image.Size = vm.Used(image.Folder)
		list.Images = append(list.Images, image)
	}
	for _, key := range s.keys(buildPrefix) {
		image := Image{Key: key, State: Building, Folder: s.buildFolder(key), UsedBy: []string{}}
		lock, err := localfile.Claim(filepath.Join(s.root, lockFolder, key))
		if err == nil {
			_ = lock.Close()
			image.State, image.Reason = Interrupted,
				"its build was interrupted; `swdt vm image build` starts it anew, `swdt vm image remove "+key+"` removes it"
		}
		image.Size = vm.Used(image.Folder)
		list.Images = append(list.Images, image)
	}
	for _, key := range s.keys(failedPrefix) {
		if slices.ContainsFunc(list.Images, func(i Image) bool { return i.Key == key }) {
			continue // the image is ready, or is being built again
		}
		folder := s.failedFolder(key)
		list.Images = append(list.Images, Image{
			Key: key, State: Failed, Folder: folder, Size: vm.Used(folder), UsedBy: []string{},
			Reason: fmt.Sprintf("its screen and serial log are in %s; `swdt vm image build` builds it again, "+
				"`swdt vm image remove %s` removes them", folder, key),
		})
	}
	slices.SortStableFunc(list.Images, func(a, b Image) int { return a.Created.Compare(b.Created) })
	return list, nil
}

// namesOf returns a copy of names that is never nil, for JSON.
func namesOf(names []string) []string { return append([]string{}, names...) }

// InUseError reports an image over which the disks of VMs are laid.
type InUseError struct {
	Key string
	VMs []string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the disks of these VMs are laid over golden image %s: %s; delete them first with %s", e.Key,
		strings.Join(e.VMs, ", "), remedy.Command("vm", "delete", "-n", strings.Join(e.VMs, ",")))
}

// Removable returns an error if Remove would refuse to remove an image.
func (s *Images) Removable(key string) error {
	known := isKey(key) && slices.ContainsFunc([]string{"", buildPrefix, failedPrefix}, func(prefix string) bool {
		return slices.Contains(s.keys(prefix), key)
	})
	if !known {
		return fmt.Errorf("image %.40q: %w; `swdt vm image list` lists those that exist", key, ErrUnknown)
	}
	users, err := s.machines.Users()
	if len(users[key]) > 0 {
		return &InUseError{key, users[key]}
	}
	return err
}

// Remove removes an image, the remains of an interrupted build, and the screenshot and the log of a
// failed build. The error is an *InUseError if the disk of a VM is laid over the image.
func (s *Images) Remove(ctx context.Context, key string, r ui.Reporter) error {
	if err := s.Removable(key); err != nil {
		return err
	}
	held, err := s.lock(ctx, key, removeLimit, r)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := s.Removable(key); err != nil { // a VM may have been made meanwhile
		return err
	}
	r.Step("removing golden image %s", key)
	if err := s.discard(ctx, key, r); err != nil {
		return err
	}
	s.clear()
	gone := filepath.Join(s.root, fmt.Sprintf("%s%s-%d", gonePrefix, key, time.Now().UnixNano()))
	if err := os.Rename(s.folder(key), gone); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove image %s: %w", key, err)
	}
	err = errors.Join(os.RemoveAll(gone), os.RemoveAll(s.failedFolder(key)))
	if err != nil {
		return fmt.Errorf("remove the renamed folder of image %s: %w", key, err)
	}
	// This fails on Windows while the file is open; a file that stays does no harm.
	_ = os.Remove(filepath.Join(s.root, lockFolder, key))
	return nil
}

// clear removes the remains of interrupted removals.
func (s *Images) clear() {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), gonePrefix) {
			_ = os.RemoveAll(filepath.Join(s.root, entry.Name()))
		}
	}
}

// Keys returns the keys that Remove takes, for completion.
func (s *Images) Keys() []string {
	all := append(append(s.keys(""), s.keys(buildPrefix)...), s.keys(failedPrefix)...)
	slices.Sort(all)
	return slices.Compact(all)
}
