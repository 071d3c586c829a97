package windows

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// files is the file system. Every handle for reading shares reading, writing and deleting, so that
// reading a file never keeps another process from replacing it.
type files struct{}

const (
	shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	// oneWriter denies a second writer, which would corrupt the file, and allows reading and renaming.
	oneWriter = windows.FILE_SHARE_READ | windows.FILE_SHARE_DELETE
	// itself is a pair of flags. They make a call open folders too, and make it open a link instead
	// of the link's target.
	itself = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
)

func (files) Stat(path string) (platform.FileInfo, error) {
	path, err := clean(path)
	if err != nil {
		return platform.FileInfo{}, err
	}
	handle, err := open(path, windows.FILE_READ_ATTRIBUTES, shareAll, windows.OPEN_EXISTING, itself)
	if err != nil {
		return platform.FileInfo{}, failed(err, "read the attributes of %s", path)
	}
	defer windows.CloseHandle(handle)
	var raw windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(handle, &raw); err != nil {
		return platform.FileInfo{}, failed(err, "read the attributes of %s", path)
	}
	var tag uint32
	if raw.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 {
		tag = tagOf(handle)
	}
	info := infoOf(path, raw, tag)
	if low, high, ok := longID(handle); ok {
		info.ID.Index, info.ID.High = low, high
	}
	return info, nil
}

// unknownTag stands for the tag of a reparse point that cannot be read. It counts as a link, which nothing follows.
const unknownTag = 0x20000000

func tagOf(handle windows.Handle) uint32 {
	var info struct{ attributes, tag uint32 } // FILE_ATTRIBUTE_TAG_INFO
	if windows.GetFileInformationByHandleEx(handle, windows.FileAttributeTagInfo, (*byte)(unsafe.Pointer(&info)),
		uint32(unsafe.Sizeof(info))) != nil {
		return unknownTag
	}
	return info.tag
}

// longID returns the halves of a file's ID of 128 bits. The ID of 64 bits is not unique on ReFS (BY_HANDLE_FILE_INFORMATION
// on learn.microsoft.com). Not every file system has the long one.
func longID(handle windows.Handle) (low, high uint64, ok bool) {
	var info struct{ volume, low, high uint64 } // FILE_ID_INFO
	err := windows.GetFileInformationByHandleEx(handle, windows.FileIdInfo, (*byte)(unsafe.Pointer(&info)),
		uint32(unsafe.Sizeof(info)))
	return info.low, info.high, err == nil && info.low|info.high != 0
}

func infoOf(path string, raw windows.ByHandleFileInformation, tag uint32) platform.FileInfo {
	info := platform.FileInfo{
		Path:     path,
		Size:     int64(raw.FileSizeHigh)<<32 | int64(raw.FileSizeLow),
		Modified: time.Unix(0, raw.LastWriteTime.Nanoseconds()),
		Created:  time.Unix(0, raw.CreationTime.Nanoseconds()),
		Folder:   raw.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0,
		ReadOnly: raw.FileAttributes&windows.FILE_ATTRIBUTE_READONLY != 0,
		Link:     raw.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 && isNameSurrogate(tag),
		ID: platform.FileID{
			Volume: uint64(raw.VolumeSerialNumber),
			Index:  uint64(raw.FileIndexHigh)<<32 | uint64(raw.FileIndexLow),
		},
	}
	if info.Folder {
		info.Size = 0
	}
	return info
}

func (f files) List(path string) ([]platform.FileInfo, error) {
	path, err := clean(path)
	if err != nil {
		return nil, err
	}
	folder, err := f.Stat(path)
	if err != nil {
		return nil, err
	}
	if !folder.Folder {
		return nil, failed(windows.ERROR_DIRECTORY, "list %s", path)
	}
	pattern, err := windows.UTF16PtrFromString(filepath.Join(path, "*"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	var found windows.Win32finddata
	search, err := windows.FindFirstFile(pattern, &found)
	if errors.Is(err, windows.ERROR_FILE_NOT_FOUND) {
		return nil, nil // the root of an empty volume has no entries, not even "."
	}
	if err != nil {
		return nil, failed(err, "list %s", path)
	}
	defer windows.FindClose(search)
	var entries []platform.FileInfo
	for ; err == nil; err = windows.FindNextFile(search, &found) {
		name := windows.UTF16ToString(found.FileName[:])
		if name == "." || name == ".." {
			continue
		}
		entry, err := f.entry(filepath.Join(path, name), found)
		if err != nil {
			return nil, err
		}
		if entry.Path != "" {
			entries = append(entries, entry)
		}
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil, failed(err, "list %s", path)
	}
	sort.Slice(entries, func(i, j int) bool { // slices.SortFunc would add 12 KB to the agent for each type
		return strings.ToLower(entries[i].Path) < strings.ToLower(entries[j].Path)
	})
	return entries, nil
}

// entry adds the file's identity to a search result. If the file cannot be opened at all
// (pagefile.sys), entry returns the search result alone. If the file was deleted after the search,
// entry returns an empty FileInfo, which List skips.
func (f files) entry(path string, found windows.Win32finddata) (platform.FileInfo, error) {
	info, err := f.Stat(path)
	switch {
	case err == nil:
		return info, nil
	case errors.Is(err, fault.ErrNotExist):
		return platform.FileInfo{}, nil
	case !errors.Is(err, fault.ErrInUse) && !errors.Is(err, fault.ErrPermission):
		return platform.FileInfo{}, err
	}
	return infoOf(path, windows.ByHandleFileInformation{
		CreationTime:   found.CreationTime,
		FileAttributes: found.FileAttributes, LastWriteTime: found.LastWriteTime,
		FileSizeHigh: found.FileSizeHigh, FileSizeLow: found.FileSizeLow,
	}, found.Reserved0), nil // Reserved0 has the tag of a reparse point
}

func (f files) Open(path string) (io.ReadSeekCloser, error) {
	path, err := clean(path)
	if err != nil {
		return nil, err
	}
	handle, err := open(path, windows.GENERIC_READ, shareAll, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL)
	if err != nil {
		return nil, failed(f.orFolder(path, err), "open %s", path)
	}
	return &openFile{file: os.NewFile(uintptr(handle), path), path: path}, nil
}

func (f files) Create(path string, mode platform.CreateMode) (platform.WriteFile, error) {
	path, err := clean(path)
	if err != nil {
		return nil, err
	}
	disposition := uint32(windows.CREATE_NEW)
	switch mode {
	case platform.CreateTruncate:
		disposition = windows.CREATE_ALWAYS
	case platform.CreateAppend:
		disposition = windows.OPEN_ALWAYS
	}
	handle, err := open(path, windows.GENERIC_WRITE|windows.READ_CONTROL, oneWriter, disposition,
		windows.FILE_ATTRIBUTE_NORMAL)
	if err != nil {
		return nil, failed(f.orFolder(path, err), "create %s", path)
	}
	file := &openFile{file: os.NewFile(uintptr(handle), path), path: path}
	if mode == platform.CreateAppend {
		// No other process writes the file, so the end stays the same.
		if _, err := file.Seek(0, io.SeekEnd); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return file, nil
}

// orFolder returns an error of the kind fault.ErrIsDirectory if path is a folder, since Windows
// reports only "access denied" or "file exists" for a folder. If path is not a folder, orFolder
// returns err.
func (f files) orFolder(path string, err error) error {
	if !errors.Is(err, windows.ERROR_ACCESS_DENIED) && !errors.Is(err, windows.ERROR_FILE_EXISTS) {
		return err
	}
	if info, statErr := f.Stat(path); statErr == nil && info.Folder {
		return &Error{Code: code(err), kind: fault.ErrIsDirectory}
	}
	return err
}

func (f files) Rename(from, to string, replace bool) error {
	from, err := clean(from)
	if err != nil {
		return err
	}
	if to, err = clean(to); err != nil {
		return err
	}
	what := fmt.Sprintf("rename %s to %s", from, to)
	if from == to {
		_, err := f.Stat(from)
		return failed(err, "%s", what) // some systems delete a file that is renamed to its own name
	}
	from16, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	to16, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	flags := uint32(windows.MOVEFILE_WRITE_THROUGH)
	if replace {
		flags |= windows.MOVEFILE_REPLACE_EXISTING
	}
	err = windows.MoveFileEx(from16, to16, flags)
	if replace {
		err = f.orFolder(to, err)
	}
	return failed(err, "%s", what)
}

func (f files) Remove(path string) error {
	path, err := clean(path)
	if err != nil {
		return err
	}
	info, err := f.Stat(path)
	if err != nil {
		return err
	}
	path16, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	if info.Folder {
		return failed(windows.RemoveDirectory(path16), "remove folder %s", path)
	}
	if info.ReadOnly {
		attributes, err := windows.GetFileAttributes(path16)
		if err != nil {
			return failed(err, "remove %s", path)
		}
		err = windows.SetFileAttributes(path16, attributes&^windows.FILE_ATTRIBUTE_READONLY)
		if err != nil {
			return failed(err, "make %s removable", path)
		}
	}
	return failed(windows.DeleteFile(path16), "remove %s", path)
}

func (f files) MakeFolder(path string) error {
	path, err := clean(path)
	if err != nil {
		return err
	}
	path16, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	err = windows.CreateDirectory(path16, nil)
	if errors.Is(err, windows.ERROR_PATH_NOT_FOUND) && filepath.Dir(path) != path {
		if err := f.MakeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		err = windows.CreateDirectory(path16, nil)
	}
	if err == nil {
		return nil
	}
	// If path is the root of a drive, such as C:\, Windows reports "access denied". For other existing folders it
	// reports "exists already".
	if info, statErr := f.Stat(path); statErr == nil && info.Folder {
		return nil
	}
	return failed(err, "make folder %s", path)
}

func (files) SetModified(path string, t time.Time) error {
	path, err := clean(path)
	if err != nil {
		return err
	}
	handle, err := open(path, windows.FILE_WRITE_ATTRIBUTES, shareAll, windows.OPEN_EXISTING, itself)
	if err != nil {
		return failed(err, "set the time of %s", path)
	}
	defer windows.CloseHandle(handle)
	written := windows.NsecToFiletime(t.UnixNano())
	return failed(windows.SetFileTime(handle, nil, nil, &written), "set the time of %s", path)
}

func (f files) FreeBytes(path string) (int64, error) {
	path, err := clean(path)
	if err != nil {
		return 0, err
	}
	// The call needs an existing folder, but path may be a file that does not exist yet.
	folder := path
	for {
		info, err := f.Stat(folder)
		if err == nil && info.Folder {
			break
		}
		if filepath.Dir(folder) == folder {
			return 0, failed(err, "get the free space of %s", path)
		}
		folder = filepath.Dir(folder)
	}
	folder16, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, fmt.Errorf("get the free space of %s: %w", path, err)
	}
	var free, total, all uint64
	err = windows.GetDiskFreeSpaceEx(folder16, &free, &total, &all)
	return int64(min(free, 1<<63-1)), failed(err, "get the free space of %s", path)
}

// clean converts an absolute path with either slash to Windows' own form. It refuses paths that depend on the
// working directory or on a drive's current folder.
func clean(path string) (string, error) {
	cleaned := filepath.Clean(filepath.FromSlash(path))
	if !filepath.IsAbs(cleaned) {
		return "", failed(windows.ERROR_BAD_PATHNAME, "path %q is not absolute", path)
	}
	return cleaned, nil
}

func open(path string, access, share, disposition, flags uint32) (windows.Handle, error) {
	return openAs(path, access, share, disposition, flags, nil)
}

// openAs is like open, and sets the security of the file that the call creates.
func openAs(path string, access, share, disposition, flags uint32, security *windows.SecurityAttributes) (
	windows.Handle, error) {
	path16, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return windows.InvalidHandle, err
	}
	return windows.CreateFile(path16, access, share, security, disposition, flags, 0)
}

// openFile is an open file that returns errors of package fault.
type openFile struct {
	file *os.File
	path string
}

func (f *openFile) Read(p []byte) (int, error) {
	n, err := f.file.Read(p)
	if err == io.EOF {
		return n, io.EOF // not wrapped, since readers compare it with io.EOF
	}
	return n, failed(err, "read %s", f.path)
}

func (f *openFile) Seek(offset int64, whence int) (int64, error) {
	n, err := f.file.Seek(offset, whence)
	return n, failed(err, "seek in %s", f.path)
}

func (f *openFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	return n, failed(err, "write %s", f.path)
}

func (f *openFile) Sync() error {
	// FlushFileBuffers needs the right to write, which Create always requests.
	return failed(windows.FlushFileBuffers(windows.Handle(f.file.Fd())), "write %s to the disk", f.path)
}

// SetModified uses the handle that wrote the file, so that the system does not change the time when that handle is
// closed.
func (f *openFile) SetModified(t time.Time) error {
	written := windows.NsecToFiletime(t.UnixNano())
	return failed(windows.SetFileTime(windows.Handle(f.file.Fd()), nil, nil, &written), "set the time of %s", f.path)
}

// ACL returns the owner and access list of the open file itself, even if another file has that
// file's name by now.
func (f *openFile) ACL() (string, error) {
	return aclOf(windows.Handle(f.file.Fd()), f.path)
}

func (f *openFile) Close() error { return failed(f.file.Close(), "close %s", f.path) }
