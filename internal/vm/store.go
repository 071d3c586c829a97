package vm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/localfile"
)

const (
	// lockFolder holds the locks. It is beside the VMs' folders, since a VM's folder can be
	// removed while its lock is held.
	lockFolder = ".locks"
	// newPrefix begins the name of the folder of a VM that is being made. gonePrefix begins the name
	// of the folder of a deleted VM. The name of any other VM's folder does not begin with a dot.
	newPrefix, gonePrefix = ".new", ".gone"
)

// Store keeps the records of your VMs, each in a folder of its own that only you can access. The
// folder of a VM is a folder with a record; the store ignores all other folders.
type Store struct{ root string }

// ErrUnknown is returned for a name that no VM has.
var ErrUnknown = errors.New("there is no VM of that name")

// UnsafeError reports a folder that another user could have made or can change.
type UnsafeError struct{ Path, What string }

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s %s, so swdt does not trust what is in it; give it to yourself alone with `chown` and "+
		"`chmod 700`, or remove it", e.Path, e.What)
}

// OpenStore returns the store in a folder, which it makes if the folder is missing. If root is
// empty, the folder is $XDG_DATA_HOME/swdt/machines.
func OpenStore(root string) (*Store, error) {
	if root == "" {
		data, err := localfile.DataFolder()
		if err != nil {
			return nil, err
		}
		root = filepath.Join(data, "swdt", "machines")
	}
	root, err := OwnFolder(root)
	if err != nil {
		return nil, fmt.Errorf("open the folder of VMs: %w", err)
	}
	return &Store{root}, nil
}

// OwnFolder makes a folder, if it is missing, and returns its absolute path. It resolves symbolic
// links and permits them, since a link lets the user keep large disks elsewhere. The error is an
// *UnsafeError if another user can change the folder.
func OwnFolder(path string) (string, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	return path, checkOwn(path, info)
}

// checkOwn returns an *UnsafeError unless path is a folder that only this user can change.
func checkOwn(path string, info fs.FileInfo) error {
	switch {
	case !info.IsDir():
		return &UnsafeError{path, "is not a folder"}
	case !ownedByUser(info):
		return &UnsafeError{path, "belongs to another user"}
	case info.Mode().Perm()&0o022 != 0 && localfile.ModesMatter:
		return &UnsafeError{path, fmt.Sprintf("can be changed by other users (mode %04o)", info.Mode().Perm())}
	}
	return nil
}

// ownedByUser reports whether a file belongs to the user whom swdt runs as. On Windows, other users cannot
// change the user's profile, where the store is.
func ownedByUser(info fs.FileInfo) bool {
	owner, known := localfile.Owner(info)
	return !localfile.ModesMatter || known && owner == os.Geteuid()
}

func (s *Store) folder(name string) string { return filepath.Join(s.root, folderName(name)) }

func (s *Store) lockPath(name string) string {
	return filepath.Join(s.root, lockFolder, folderName(name))
}

// Get returns the record of a VM, or ErrUnknown if there is none.
func (s *Store) Get(name string) (Record, error) {
	if err := CheckName(name); err != nil {
		return Record{}, err
	}
	r, err := s.read(folderName(name))
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("VM %s: %w", name, ErrUnknown)
	}
	if err != nil {
		return r, err
	}
	if r.Name != name {
		return r, &DamagedError{Folder: s.folder(name), Err: fmt.Errorf("its record is of VM %q", r.Name)}
	}
	return r, nil
}

// read returns the record in one of the store's folders. The error is fs.ErrNotExist if the folder
// is not a VM's.
func (s *Store) read(folder string) (Record, error) {
	path := filepath.Join(s.root, folder)
	info, err := os.Lstat(path)
	if err != nil {
		return Record{}, err
	}
	if _, err := os.Lstat(filepath.Join(path, recordFile)); err != nil {
		return Record{}, err
	}
	if err := checkOwn(path, info); err != nil {
		return Record{}, err
	}
	return readRecord(path)
}

// Found is a VM's folder with its record, or with the error from reading the record.
type Found struct {
	Record Record
	Folder string
	Err    error
}

// All returns all of your VMs, sorted by name.
func (s *Store) All() ([]Found, error) {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return nil, fmt.Errorf("list the VMs: %w", err)
	}
	var all []Found
	for _, entry := range entries {
		if entry.Name()[0] == '.' {
			continue
		}
		r, err := s.read(entry.Name())
		if errors.Is(err, fs.ErrNotExist) || entry.Type().IsRegular() {
			continue // not a VM's
		}
		if err == nil && folderName(r.Name) != entry.Name() {
			err = &DamagedError{Folder: filepath.Join(s.root, entry.Name()), Err: fmt.Errorf("its record is of VM %q", r.Name)}
		}
		all = append(all, Found{Record: r, Folder: filepath.Join(s.root, entry.Name()), Err: err})
	}
	slices.SortFunc(all, func(a, b Found) int { return natural.Compare(a.Record.Name, b.Record.Name) })
	return all, nil
}

// add makes the folder of a new VM. It writes the record into the folder, and calls fill to write
// the other files. The folder appears at once with all of these files, or not at all.
func (s *Store) add(r Record, fill func(folder string) error) error {
	staging, err := localfile.Stage(s.root, newPrefix)
	if err != nil {
		return fmt.Errorf("make the VM's folder: %w", err)
	}
	if err = fill(staging.Path); err == nil {
		err = writeRecord(staging.Path, r)
	}
	if err == nil {
		err = staging.Keep(r.Folder)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make the VM's folder: %w", err), staging.Remove())
	}
	return nil
}

// remove removes a VM's folder. It first renames the folder, so that the VM is gone at once. If
// the removal is interrupted, the next removal clears the rest.
func (s *Store) remove(folder string) error {
	s.clear()
	gone := filepath.Join(s.root, fmt.Sprintf("%s-%d-%d", gonePrefix, os.Getpid(), time.Now().UnixNano()))
	if err := os.Rename(folder, gone); err != nil {
		return fmt.Errorf("remove the VM's folder: %w", err)
	}
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("remove the renamed folder of the VM: %w", err)
	}
	return nil
}

// clear removes the remains of interrupted removals. Several processes may call clear at once.
func (s *Store) clear() {
	left, err := filepath.Glob(filepath.Join(s.root, gonePrefix+"-*"))
	if err != nil {
		return
	}
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && checkOwn(path, info) == nil {
			_ = os.RemoveAll(path)
		}
	}
}
