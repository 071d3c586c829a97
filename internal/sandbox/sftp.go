package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// disk has the file operations that the SFTP server needs. platform.Files has the same methods.
type disk interface {
	Stat(path string) (platform.FileInfo, error)
	List(path string) ([]platform.FileInfo, error)
	Open(path string) (io.ReadSeekCloser, error)
	Create(path string, mode platform.CreateMode) (platform.WriteFile, error)
	Rename(from, to string, replace bool) error
	Remove(path string) error
	MakeFolder(path string) error
	SetModified(path string, t time.Time) error
	FreeBytes(path string) (int64, error)
}

// sftpHandlers are the handlers with which package sftp serves a disk.
type sftpHandlers struct {
	disk  disk
	fault func(method, path string) error // nil: none

	mu      sync.Mutex
	written map[string]*written // by path in lower case
}

// windowsPath converts SFTP's /C:/folder/file to C:\folder\file. Package sftp puts the start
// folder in front of a relative path. Win32-OpenSSH treats C:/file as absolute, so windowsPath
// also finds a drive in the middle of the path.
func windowsPath(p string) (string, error) {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	for i := len(parts) - 1; i >= 0; i-- {
		if isDrive(parts[i]) {
			return strings.ToUpper(parts[i]) + `\` + strings.Join(parts[i+1:], `\`), nil
		}
	}
	return "", fmt.Errorf("%s: %w", p, sftp.ErrSSHFxNoSuchFile)
}

func isDrive(s string) bool {
	return len(s) == 2 && s[1] == ':' && (s[0]|0x20) >= 'a' && (s[0]|0x20) <= 'z'
}

// broken returns the error of the fault for a request.
func (h *sftpHandlers) broken(method, path string) error {
	if h.fault == nil {
		return nil
	}
	return sftpError(h.fault(method, path))
}

// sftpError converts an error to the SFTP status that Win32-OpenSSH would send (PowerShell/openssh-portable a915f06). Of
// these errors, its fileio.c, errno_from_Win32Error, has an errno for a missing path and for denied access alone;
// sftp-server.c, errno_to_portable, answers all others with a failure: a sharing violation (32), a virus (225, 226), a full
// or write-protected disk.
func sftpError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fault.ErrNotExist):
		return sftp.ErrSSHFxNoSuchFile
	case errors.Is(err, fault.ErrPermission):
		return sftp.ErrSSHFxPermissionDenied
	}
	return sftp.ErrSSHFxFailure
}

// StatVFS implements the request statvfs@openssh.com (misc.c, statvfs).
func (h *sftpHandlers) StatVFS(r *sftp.Request) (*sftp.StatVFS, error) {
	p, err := windowsPath(r.Filepath)
	if err != nil {
		return nil, err
	}
	free, err := h.disk.FreeBytes(p)
	if err != nil {
		return nil, sftpError(err)
	}
	const cluster = 4096
	clusters := uint64(free) / cluster
	return &sftp.StatVFS{Bsize: cluster, Frsize: cluster, Blocks: clusters, Bfree: clusters, Bavail: clusters,
		Files: math.MaxUint64, Ffree: math.MaxUint64, Favail: math.MaxUint64}, nil
}

// Fileread opens a file for reading.
func (h *sftpHandlers) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	p, err := windowsPath(r.Filepath)
	if err != nil {
		return nil, err
	}
	if err := h.broken(r.Method, p); err != nil {
		return nil, err
	}
	file, err := h.disk.Open(p)
	if err != nil {
		return nil, sftpError(err)
	}
	return &readerAt{file: file}, nil
}

// readerAt makes positioned reads from a file that has only one current position.
type readerAt struct {
	mu   sync.Mutex
	file io.ReadSeekCloser
}

func (r *readerAt) ReadAt(b []byte, offset int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r.file, b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

func (r *readerAt) Close() error { return r.file.Close() }

// Filewrite opens a file for writing. Without the flag "truncate" the file keeps its content, and
// the client writes in place, as scp does since OpenSSH 9.
func (h *sftpHandlers) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	p, err := windowsPath(r.Filepath)
	if err != nil {
		return nil, err
	}
	if err := h.broken(r.Method, p); err != nil {
		return nil, err
	}
	flags := r.Pflags()
	info, err := h.disk.Stat(p)
	exists := err == nil
	switch {
	case exists && info.Folder:
		return nil, sftp.ErrSSHFxFailure
	case !exists && !flags.Creat:
		return nil, sftp.ErrSSHFxNoSuchFile
	case flags.Append:
		return nil, sftp.ErrSSHFxOpUnsupported
	}
	mode := platform.CreateAppend
	switch {
	case flags.Creat && flags.Excl:
		mode = platform.CreateNew
	case flags.Trunc || !exists:
		mode = platform.CreateTruncate
	}
	return h.open(p, mode)
}

// writable has the methods for writing in place. The files of every disk have these methods in
// addition to the methods of platform.WriteFile.
type writable interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

func (h *sftpHandlers) open(p string, mode platform.CreateMode) (*written, error) {
	created, err := h.disk.Create(p, mode)
	if err != nil {
		return nil, sftpError(err)
	}
	file, ok := created.(writable)
	if !ok {
		return nil, errors.Join(sftp.ErrSSHFxOpUnsupported, created.Close())
	}
	w := &written{file: file, path: p, handlers: h}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.written[strings.ToLower(p)] = w
	return w, nil
}

// written is a file that a client has open for writing.
type written struct {
	file     writable
	path     string
	handlers *sftpHandlers
}

func (w *written) WriteAt(b []byte, offset int64) (int, error) {
	n, err := w.file.WriteAt(b, offset)
	return n, sftpError(err)
}

func (w *written) Close() error {
	h := w.handlers
	h.mu.Lock()
	if key := strings.ToLower(w.path); h.written[key] == w {
		delete(h.written, key)
	}
	h.mu.Unlock()
	return sftpError(w.file.Close())
}

// truncate uses the client's own handle if the client has the file open, since Windows does not let
// another handle write meanwhile. scp truncates each file at the end.
func (h *sftpHandlers) truncate(p string, size uint64) error {
	if size > math.MaxInt64 {
		return sftp.ErrSSHFxFailure
	}
	h.mu.Lock()
	w := h.written[strings.ToLower(p)]
	h.mu.Unlock()
	if w != nil {
		return sftpError(w.file.Truncate(int64(size)))
	}
	if _, err := h.disk.Stat(p); err != nil {
		return sftpError(err)
	}
	w, err := h.open(p, platform.CreateAppend)
	if err != nil {
		return err
	}
	return errors.Join(sftpError(w.file.Truncate(int64(size))), w.Close())
}

// Filecmd carries out the requests that change the tree of folders or a file's attributes.
func (h *sftpHandlers) Filecmd(r *sftp.Request) error {
	p, err := windowsPath(r.Filepath)
	if err != nil {
		return err
	}
	if err := h.broken(r.Method, p); err != nil {
		return err
	}
	switch r.Method {
	case "Rename":
		return h.rename(p, r.Target, false)
	case "Remove":
		return h.remove(p, false)
	case "Rmdir":
		return h.remove(p, true)
	case "Mkdir":
		return h.makeFolder(p)
	case "Setstat":
		return h.setAttributes(p, r.AttrFlags(), r.Attributes())
	}
	return sftp.ErrSSHFxOpUnsupported
}

// setAttributes sets the size and the time; it ignores permission bits, which have no meaning on
// Windows.
func (h *sftpHandlers) setAttributes(p string, set sftp.FileAttrFlags, to *sftp.FileStat) error {
	if set.Size {
		if err := h.truncate(p, to.Size); err != nil {
			return err
		}
	}
	if set.Acmodtime {
		return sftpError(h.disk.SetModified(p, time.Unix(int64(to.Mtime), 0)))
	}
	return nil
}

// PosixRename is a rename that replaces its target.
func (h *sftpHandlers) PosixRename(r *sftp.Request) error {
	p, err := windowsPath(r.Filepath)
	if err != nil {
		return err
	}
	return h.rename(p, r.Target, true)
}

func (h *sftpHandlers) rename(from, target string, replace bool) error {
	to, err := windowsPath(target)
	if err != nil {
		return err
	}
	return sftpError(h.disk.Rename(from, to, replace))
}

func (h *sftpHandlers) remove(p string, folder bool) error {
	info, err := h.disk.Stat(p)
	if err != nil {
		return sftpError(err)
	}
	if info.Folder != folder {
		return sftp.ErrSSHFxFailure
	}
	return sftpError(h.disk.Remove(p))
}

// makeFolder creates one folder. Like mkdir and unlike platform.Files, it fails if the folder
// exists or its parent does not.
func (h *sftpHandlers) makeFolder(p string) error {
	if _, err := h.disk.Stat(p); err == nil {
		return sftp.ErrSSHFxFailure
	}
	if parent := p[:strings.LastIndex(p, `\`)]; len(parent) > len("C:") {
		if _, err := h.disk.Stat(parent); err != nil {
			return sftpError(err)
		}
	}
	return sftpError(h.disk.MakeFolder(p))
}

// Filelist lists a folder or describes a file.
func (h *sftpHandlers) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if r.Filepath == "/" {
		return h.root(r.Method)
	}
	p, err := windowsPath(r.Filepath)
	if err != nil {
		return nil, err
	}
	if err := h.broken(r.Method, p); err != nil {
		return nil, err
	}
	switch r.Method {
	case "Stat":
		info, err := h.disk.Stat(p)
		if err != nil {
			return nil, sftpError(err)
		}
		return listing{fileInfo{path.Base(r.Filepath), info}}, nil
	case "List":
		return h.list(p)
	}
	return nil, sftp.ErrSSHFxOpUnsupported
}

// root lists or describes the folder above the drives.
func (h *sftpHandlers) root(method string) (sftp.ListerAt, error) {
	switch method {
	case "Stat":
		return listing{fileInfo{"/", platform.FileInfo{Folder: true}}}, nil
	case "List":
		return listing{fileInfo{"C:", platform.FileInfo{Folder: true}}}, nil
	}
	return nil, sftp.ErrSSHFxOpUnsupported
}

func (h *sftpHandlers) list(p string) (sftp.ListerAt, error) {
	entries, err := h.disk.List(p)
	if err != nil {
		return nil, sftpError(err)
	}
	list := make(listing, len(entries))
	for i, entry := range entries {
		list[i] = fileInfo{entry.Path[strings.LastIndex(entry.Path, `\`)+1:], entry}
	}
	return list, nil
}

type listing []os.FileInfo

// ListAt implements sftp.ListerAt.
func (l listing) ListAt(into []os.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(into, l[offset:])
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}

// fileInfo is a platform.FileInfo as an os.FileInfo.
type fileInfo struct {
	name string
	info platform.FileInfo
}

func (f fileInfo) Name() string       { return f.name }
func (f fileInfo) Size() int64        { return f.info.Size }
func (f fileInfo) ModTime() time.Time { return f.info.Modified }
func (f fileInfo) IsDir() bool        { return f.info.Folder }
func (f fileInfo) Sys() any           { return nil }

// Mode returns the permission bits that Win32-OpenSSH invents.
func (f fileInfo) Mode() fs.FileMode {
	switch {
	case f.info.Link:
		return fs.ModeSymlink | 0o777
	case f.info.Folder:
		return fs.ModeDir | 0o700
	case f.info.ReadOnly:
		return 0o400
	}
	return 0o700
}
