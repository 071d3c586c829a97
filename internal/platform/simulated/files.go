package simulated

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const volumeSerial = 0x5EED0C

// disk is C:. It is guarded by the machine's lock.
type disk struct {
	root      *file
	capacity  int64
	used      int64
	readOnly  bool
	lastIndex uint64
	refs      bool // see Options.ReFS
	// slowDelete is Options.SlowDelete.
	slowDelete bool
}

// file is a file or folder.
type file struct {
	index    uint64
	name     string // as spelled
	parent   *file  // nil for the root and for removed files
	folder   bool
	children map[string]*file // files and folders in a folder, by folded name
	link     string           // target of a symbolic link
	refs     bool             // see Options.ReFS
	tag      uint32           // of a reparse point that is no symbolic link; 0: none
	readOnly bool
	modified time.Time
	created  time.Time
	security access.List

	content content
	synced  int64 // how many bytes survive a power cut
	image   *Image
	running int // number of processes that execute the file
	handles map[*handle]struct{}
	holds   map[*Hold]struct{}
	lock    *fileLock
	removed bool // only open handles still refer to the file
	// deleting is set for a removed file that still has its name: each opening fails with STATUS_DELETE_PENDING, which is
	// ERROR_ACCESS_DENIED, and its folder is not empty.
	deleting bool
}

func newDisk(capacity int64, refs bool) *disk {
	d := &disk{capacity: capacity, refs: refs}
	d.root = d.newFile("", true)
	if err := d.root.create(system(), driveAccess); err != nil {
		panic("simulated: " + err.Error())
	}
	return d
}

func (d *disk) newFile(name string, folder bool) *file {
	d.lastIndex++
	f := &file{index: d.lastIndex, refs: d.refs, name: name, folder: folder, modified: now(), created: now(),
		handles: map[*handle]struct{}{}, holds: map[*Hold]struct{}{}}
	if folder {
		f.children = map[string]*file{}
	}
	return f
}

// find returns the file at a path. The parameter `follow` decides whether a link as the last
// element of the path is followed; links as earlier elements are always followed.
func (d *disk) find(path string, follow bool) (*file, error) {
	return d.walk(path, follow, 0)
}

// maxLinks is the limit of reparse points on a path ("Reparse Points" on learn.microsoft.com).
const maxLinks = 63

func (d *disk) walk(path string, follow bool, depth int) (*file, error) {
	parts, _, err := splitPath(path)
	if err != nil {
		return nil, err
	}
	if depth > maxLinks {
		return nil, fmt.Errorf("%s: too many links: %w", path, fs.ErrInvalid)
	}
	f := d.root
	for i, part := range parts {
		if !f.folder {
			return nil, fmt.Errorf("%s: %w", path, fault.ErrNotExist)
		}
		if f = f.children[fold(part)]; f == nil {
			return nil, fmt.Errorf("%s: %w", path, fault.ErrNotExist)
		}
		if f.deleting {
			return nil, fmt.Errorf("%s: it is being deleted: %w", path, fault.ErrPermission)
		}
		if f.link != "" && (follow || i < len(parts)-1) {
			rest := strings.Join(append([]string{f.link}, parts[i+1:]...), `\`)
			return d.walk(rest, follow, depth+1)
		}
	}
	return f, nil
}

// slot returns the folder that contains the last name of path, and that name.
func (d *disk) slot(path string) (folder *file, name string, err error) {
	parts, _, err := splitPath(path)
	if err != nil {
		return nil, "", err
	}
	if len(parts) == 0 {
		return nil, "", fmt.Errorf("%s: the root of the drive: %w", path, fault.ErrPermission)
	}
	parent := systemDrive + `\` + strings.Join(parts[:len(parts)-1], `\`)
	if folder, err = d.find(parent, true); err != nil {
		return nil, "", err
	}
	if !folder.folder {
		return nil, "", fmt.Errorf("%s: %w", path, fault.ErrNotExist)
	}
	return folder, parts[len(parts)-1], nil
}

func (d *disk) writable() error {
	if d.readOnly {
		return fault.ErrReadOnly
	}
	return nil
}

// create adds a new file or folder for an account; sddl has the same meaning as in Files.NewFolder.
func (d *disk) create(by *account, folder *file, name string, isFolder bool, sddl string) (*file, error) {
	if err := d.writable(); err != nil {
		return nil, err
	}
	if err := folder.allowAdding(by, isFolder); err != nil {
		return nil, err
	}
	f := d.newFile(name, isFolder)
	f.parent = folder
	if err := f.create(by, sddl); err != nil {
		return nil, err
	}
	d.add(folder, f, name)
	return f, nil
}

func (d *disk) add(folder *file, f *file, name string) {
	f.parent, f.name = folder, name
	folder.children[fold(name)] = f
	folder.modified = now()
}

func (d *disk) detach(f *file) {
	delete(f.parent.children, fold(f.name))
	f.parent.modified = now()
	f.parent = nil
}

func (d *disk) makeFolder(by *account, path string) error {
	parts, clean, err := splitPath(path)
	if err != nil {
		return err
	}
	f := d.root
	for _, part := range parts {
		next := f.children[fold(part)]
		if next != nil && next.link != "" {
			if next, err = d.walk(next.link, true, 1); err != nil {
				return err
			}
		}
		if next == nil {
			if next, err = d.create(by, f, part, true, ""); err != nil {
				return err
			}
		}
		if !next.folder {
			return fmt.Errorf("%s: %s is a file: %w", clean, part, fault.ErrExist)
		}
		f = next
	}
	return nil
}

// newFolder makes one folder, if the name is free.
func (d *disk) newFolder(by *account, path, sddl string) error {
	folder, name, err := d.slot(path)
	if err != nil {
		return err
	}
	if folder.children[fold(name)] != nil {
		return fault.ErrExist
	}
	_, err = d.create(by, folder, name, true, sddl)
	return err
}

// remove deletes a file, an empty folder or a link. The file system refuses to delete a program that runs with
// STATUS_CANNOT_DELETE, which is ERROR_ACCESS_DENIED (FILE_DISPOSITION_INFORMATION_EX: "the file is read-only, or there's
// an existing mapped view"; winfsp/winfsp, src/sys/fileinfo.c, does the same). A handle without FILE_SHARE_DELETE is a
// sharing violation. Since Windows 10 1903, the name is free at once while others have the file open; before, it is free
// with the last handle (dotnet/corefx#38186; Options.SlowDelete).
func (d *disk) remove(by *account, path string) error {
	f, err := d.find(path, false)
	if err != nil {
		return err
	}
	switch {
	case f == d.root:
		return fault.ErrPermission
	case len(f.children) > 0:
		return fmt.Errorf("the folder is not empty: %w", fault.ErrExist)
	case f.running > 0:
		return fmt.Errorf("it is running: %w", fault.ErrPermission)
	case f.lock != nil || f.held():
		return fault.ErrInUse
	}
	if err := d.writable(); err != nil {
		return err
	}
	if err := f.allowTaking(by); err != nil {
		return err
	}
	if d.slowDelete && len(f.handles) > 0 {
		f.deleting = true
		return nil
	}
	d.forget(f)
	return nil
}

// forget takes a file off the disk.
func (d *disk) forget(f *file) {
	d.detach(f)
	d.used -= f.content.size
	f.removed = true
}

// rename moves a file or folder. It keeps its access list: only a new file inherits one ("How permissions are handled
// when you copy and move files", Microsoft KB 310316).
func (d *disk) rename(by *account, from, to string, replace bool) error {
	f, err := d.find(from, false)
	if err != nil {
		return err
	}
	folder, name, err := d.slot(to)
	if err != nil {
		return err
	}
	if err := d.writable(); err != nil {
		return err
	}
	if err := f.movable(folder); err != nil {
		return err
	}
	if err := f.allowTaking(by); err != nil {
		return err
	}
	if err := folder.allowAdding(by, f.folder); err != nil {
		return err
	}
	target := folder.children[fold(name)]
	if target != nil && target != f {
		if !replace {
			return fault.ErrExist
		}
		if err := f.canReplace(target); err != nil {
			return err
		}
		if err := target.allowTaking(by); err != nil {
			return err
		}
		d.detach(target)
		d.used -= target.content.size
		target.removed = true
	}
	d.detach(f)
	d.add(folder, f, name)
	return nil
}

// movable returns nil if a file may be moved into a folder: [MS-FSA], "FileRenameInformation", which refuses a folder with
// open files below it with STATUS_ACCESS_DENIED. A program that runs can be renamed, since CreateProcess opens it with
// FILE_SHARE_DELETE; that this holds beside every virus scanner is a guess, docs/guesses.md.
func (f *file) movable(into *file) error {
	if f.parent == nil {
		return fault.ErrPermission
	}
	for up := into; up != nil; up = up.parent {
		if up == f {
			return fmt.Errorf("a folder cannot move into itself: %w", fs.ErrInvalid)
		}
	}
	if f.lock != nil || f.held() {
		return fault.ErrInUse
	}
	if f.folder && f.busy() {
		return fmt.Errorf("a file in it is open or running: %w", fault.ErrPermission)
	}
	return nil
}

// canReplace returns nil if f may replace target: "the target file was open and ReplaceIfExists is nonzero" is
// STATUS_ACCESS_DENIED ([MS-FSCC], FileRenameInformation), also if each handle shares deletion. MoveFileEx replaces no
// folder.
func (f *file) canReplace(target *file) error {
	switch {
	case target.deleting:
		return fmt.Errorf("the target is being deleted: %w", fault.ErrPermission)
	case target.folder:
		return fmt.Errorf("the target: %w", fault.ErrIsDirectory)
	case f.folder:
		return fmt.Errorf("a folder cannot replace a file: %w", fault.ErrPermission)
	case target.running > 0:
		return fmt.Errorf("the target is running: %w", fault.ErrPermission)
	case target.readOnly:
		return fmt.Errorf("the target is read-only: %w", fault.ErrPermission)
	case len(target.handles) > 0 || target.lock != nil || len(target.holds) > 0:
		return fmt.Errorf("the target is open: %w", fault.ErrPermission)
	}
	return nil
}

// busy reports whether anything below a folder is open or running. It ignores handles on the folder
// itself, since a handle that shares deletion does not prevent a move.
func (f *file) busy() bool {
	for _, child := range f.children {
		if child.running > 0 || len(child.handles) > 0 || child.lock != nil || len(child.holds) > 0 || child.busy() {
			return true
		}
	}
	return false
}

// writers counts the handles and locks that have the file open for writing. Only one at a time is
// allowed.
func (f *file) writers() int {
	n := 0
	for h := range f.handles {
		if h.write {
			n++
		}
	}
	if f.lock != nil {
		n++
	}
	return n
}

func (f *file) info(path string) platform.FileInfo {
	return platform.FileInfo{
		Path: path, Size: f.content.size, Modified: f.modified, Created: f.created, Folder: f.folder,
		ReadOnly: f.readOnly, Link: f.link != "" || f.tag&nameSurrogate != 0,
		ID: f.id(),
	}
}

// path returns the present path of a file.
func (f *file) path() string {
	var parts []string
	for ; f.parent != nil; f = f.parent {
		parts = append(parts, f.name)
	}
	slices.Reverse(parts)
	return systemDrive + `\` + strings.Join(parts, `\`)
}

// write appends as much as fits on the disk.
func (d *disk) write(f *file, data []byte) (int, error) {
	if err := d.writable(); err != nil {
		return 0, err
	}
	n := int(min(int64(len(data)), max(0, d.capacity-d.used)))
	f.content.append(data[:n])
	if !f.removed {
		d.used += int64(n)
	}
	f.modified, f.image = now(), nil
	if n < len(data) {
		return n, fault.ErrDiskFull
	}
	return n, nil
}

// writeAt writes all bytes of data, or nothing if there is no room.
func (d *disk) writeAt(f *file, data []byte, offset int64) (int, error) {
	if err := d.writable(); err != nil {
		return 0, err
	}
	more := max(0, offset+int64(len(data))-f.content.size)
	if more > max(0, d.capacity-d.used) {
		return 0, fault.ErrDiskFull
	}
	f.content.writeAt(data, offset)
	if !f.removed {
		d.used += more
	}
	f.synced = min(f.synced, offset)
	f.modified, f.image = now(), nil
	return len(data), nil
}

func (d *disk) truncate(f *file, size int64) {
	d.used -= f.content.size - size
	f.content.truncate(size)
	f.synced = min(f.synced, size)
	f.modified, f.image = now(), nil
}

// each calls the function `visit` for every file on the disk.
func (d *disk) each(visit func(*file)) {
	var down func(*file)
	down = func(f *file) {
		visit(f)
		for _, name := range sortedKeys(f.children) {
			down(f.children[name])
		}
	}
	down(d.root)
}

// dropUnsynced drops the bytes that were written and not synced; syncAll keeps them, as an orderly
// shutdown does.
func (d *disk) dropUnsynced() {
	d.each(func(f *file) {
		if f.synced < f.content.size {
			d.truncate(f, f.synced)
		}
	})
}

func (d *disk) syncAll() {
	d.each(func(f *file) { f.synced = f.content.size })
}

func (d *disk) forgetPrograms() {
	d.each(func(f *file) { f.image = nil })
}
