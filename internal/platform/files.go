package platform

import (
	"fmt"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// FileInfo describes a file or folder. Times have the file system's precision.
type FileInfo struct {
	Path     string // the requested path, cleaned, such as C:\k\kubelet.exe
	Size     int64  // bytes; 0 for a folder
	Modified time.Time
	// Created is the time at which the file was created, by the machine's clock. A new access list, name or attribute
	// does not change it. If a file of the same name existed up to 15 seconds before, NTFS gives the new file the old
	// file's time.
	Created  time.Time
	Folder   bool
	ReadOnly bool
	// Link reports whether the file stands for another: a symbolic link or junction, which is never followed. A reparse
	// point that is a file of its own, such as a deduplicated one, is no link.
	Link bool
	ID   FileID // identifies the file, also after a rename
}

// FileID identifies a file on a volume. ReFS, also that of a Dev Drive, has IDs of 128 bits; on other file systems High
// is 0.
type FileID struct {
	Volume uint64
	Index  uint64
	High   uint64 // the upper half of the ID, whose lower half is Index
}

// Holder is a process that has a file open or runs it.
type Holder struct {
	PID  uint32
	Name string // MsMpEng.exe, or the name that the program gives itself
	Runs bool   // the process runs the file; this alone does not prevent a rename
}

// CreateMode selects how Create treats an existing file.
type CreateMode int

const (
	CreateNew      CreateMode = iota // fails with fault.ErrExist if the file exists
	CreateTruncate                   // starts with an empty file
	CreateAppend                     // continues at the end; creates the file if needed
)

// Files is the machine's file system. Paths are absolute Windows paths with either slash, and case does not matter.
// Windows' rules hold: a running executable can be renamed but not deleted, replaced or opened for writing
// (fault.ErrPermission or fault.ErrInUse).
type Files interface {
	Stat(path string) (FileInfo, error)
	// List returns a folder's entries, sorted by name, without . and ..
	List(path string) ([]FileInfo, error)
	// Open opens a file for reading; other processes may read, rename and delete it.
	Open(path string) (io.ReadSeekCloser, error)
	// Create opens a file for writing; the parent folder must exist.
	Create(path string, mode CreateMode) (WriteFile, error)
	// Rename moves a file or folder on one volume. If `to` exists, Rename fails with
	// fault.ErrExist, unless `replace` is set: then Rename replaces the file `to` atomically, but
	// never a folder. The change is on the disk when Rename returns.
	Rename(from, to string, replace bool) error
	// Remove deletes a file or an empty folder, even if it is read-only.
	Remove(path string) error
	// CheckHeld returns an error of the kind fault.ErrInUse if Rename and Remove would fail now since another process
	// has the file open and does not allow that. It changes nothing. It may return nil although such a call fails:
	// another process can open the file at any time.
	CheckHeld(path string) error
	// Holders returns the processes that have the file open or run it, except the caller, in the order of their PIDs.
	// Windows does not find each of them: the kernel's own handles, such as those of remote machines, have no process.
	Holders(path string) ([]Holder, error)
	// MakeFolder creates a folder and its missing parents; no error if the folder exists already.
	MakeFolder(path string) error
	// SetModified sets the time of the last change.
	SetModified(path string, t time.Time) error
	// NewFolder and NewFile create one folder or file with the owner and access list of sddl. If
	// sddl is empty, the new folder or file inherits the access list of the parent folder. If the
	// name exists, even as a link, NewFolder and NewFile fail with fault.ErrExist and change
	// nothing. The parent folder must exist.
	NewFolder(path, sddl string) error
	NewFile(path, sddl string) (WriteFile, error)
	// ACL returns owner and access list in SDDL (O:…D:…). SetACL sets the parts that sddl contains,
	// all at once. A file with a protected list (D:P…) inherits nothing. If path is a link, ACL and
	// SetACL apply to the link. ACLOf reads the access list of a file that Open, Create or NewFile
	// returned.
	ACL(path string) (sddl string, err error)
	SetACL(path, sddl string) error
	// KeepsACL reports whether the file system keeps access lists and enforces them. Wine keeps
	// none: ACL returns an invented list under Wine.
	KeepsACL() bool
	// FreeBytes returns how many bytes the calling user may still write on path's volume.
	FreeBytes(path string) (int64, error)
	// Lock acquires the lock that the file at path represents; it creates the file and writes `holder` into it for
	// other processes to read. It does not wait: if another process holds the lock, it returns a *fault.LockedError.
	// The lock ends with Unlock or with the process, whichever is first.
	Lock(path string, holder []byte) (Unlocker, error)
}

// WriteFile is a file open for writing. No other process can write the file until it is closed.
// When Sync returns nil, the written bytes are on the disk, not just in the cache. SetModified must
// follow the last write; it sets the time of the last change that the file has after Close.
type WriteFile interface {
	io.Writer
	io.Closer
	Sync() error
	SetModified(t time.Time) error
}

// Unlocker releases a lock.
type Unlocker interface{ Unlock() error }

// ACLOf returns, in SDDL, the owner and access list of a file that Open, Create or NewFile of Files
// opened. The result belongs to the opened file, even if another file has that file's name by now.
func ACLOf(file any) (sddl string, err error) {
	opened, ok := file.(interface{ ACL() (string, error) })
	if !ok {
		return "", fmt.Errorf("read the access list of an open file: %w", fault.ErrNotSupported)
	}
	return opened.ACL()
}
