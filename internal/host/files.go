package host

import (
	"fmt"
	"io"
	"time"
)

// FileInfo describes a file or folder. Times have the file system's precision.
type FileInfo struct {
	Path     string // as asked for, cleaned: C:\k\kubelet.exe
	Size     int64  // bytes; 0 for a folder
	Modified time.Time
	// Created is when the file came to be, by the machine's clock. A new access
	// list, name or attribute leaves it as it is. NTFS gives a new file the time of
	// one that had its name up to 15 seconds before.
	Created  time.Time
	Folder   bool
	ReadOnly bool
	Link     bool   // a reparse point: symbolic link or junction; never followed
	ID       FileID // the same for as long as it is the same file, also after a rename
}

// FileID identifies a file on a volume.
type FileID struct {
	Volume uint64
	Index  uint64
}

// CreateMode says what CreateFile does about a file that exists.
type CreateMode int

const (
	CreateNew      CreateMode = iota // fails with ErrExist
	CreateTruncate                   // starts from nothing
	CreateAppend                     // continues at the end; creates the file if needed
)

// Files is the machine's file system. Paths are absolute Windows paths with
// either slash in any case. Windows' rules hold: a running executable can be
// renamed but not deleted, replaced or opened for writing (ErrPermission or
// ErrInUse).
type Files interface {
	Stat(path string) (FileInfo, error)
	// List returns a folder's entries, sorted by name, without . and ..
	List(path string) ([]FileInfo, error)
	// Open reads a file while others may read, rename and delete it.
	Open(path string) (io.ReadSeekCloser, error)
	// Create opens a file for writing; the parent folder must exist.
	Create(path string, mode CreateMode) (WriteFile, error)
	// Rename moves a file or folder on one volume. Where `to` exists it fails
	// with ErrExist unless replace is set, which replaces a file atomically
	// (never a folder). The change is on the disk when it returns.
	Rename(from, to string, replace bool) error
	// Remove deletes a file or an empty folder, read-only ones too.
	Remove(path string) error
	// MakeFolder creates a folder and its missing parents; no error if it exists.
	MakeFolder(path string) error
	// SetModified sets the time of the last change.
	SetModified(path string, t time.Time) error
	// NewFolder and NewFile create one folder or file that has the owner and access
	// list of sddl from its first moment on; empty: what the parent folder passes on.
	// Where anything has that name, a link too, they fail with ErrExist and change
	// nothing. The parent folder must exist.
	NewFolder(path, sddl string) error
	NewFile(path, sddl string) (WriteFile, error)
	// ACL returns owner and access list in SDDL (O:…D:…), and SetACL sets those
	// parts that sddl names, all at once. A protected list (D:P…) stops inheriting.
	// At a link both mean the link. What Open, Create and NewFile return can be asked
	// for its own: see ACLOf.
	ACL(path string) (sddl string, err error)
	SetACL(path, sddl string) error
	// KeepsACL reports whether the file system keeps access lists and enforces them.
	// Wine does not: what ACL returns there is made up.
	KeepsACL() bool
	// FreeBytes is what the calling user may still write on path's volume.
	FreeBytes(path string) (int64, error)
	// Lock takes the lock that the file at path stands for, creating the file
	// and leaving `holder` in it for others to read. It does not wait: a lock
	// held elsewhere is a *LockedError. The lock ends with Unlock or with the
	// process, whichever is first.
	Lock(path string, holder []byte) (Unlocker, error)
}

// WriteFile is a file open for writing, which nobody else can write until it is
// closed. What was written is on the disk, not just in the cache, when Sync
// returns nil. SetModified, after the last write, sets the time of the last
// change that the file has when it is closed.
type WriteFile interface {
	io.Writer
	io.Closer
	Sync() error
	SetModified(t time.Time) error
}

// Unlocker gives a lock back.
type Unlocker interface{ Unlock() error }

// ACLOf returns the owner and access list of a file that Open, Create or NewFile of
// Files opened, in SDDL: of that very file, whatever has its name by now.
func ACLOf(file any) (sddl string, err error) {
	opened, ok := file.(interface{ ACL() (string, error) })
	if !ok {
		return "", fmt.Errorf("read the access list of an open file: %w", ErrNotSupported)
	}
	return opened.ACL()
}
