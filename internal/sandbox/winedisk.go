package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// prefixDisk is a Wine prefix's drive C: for the SFTP server. It accesses the files from outside
// Wine, so Wine's locks have no effect.
type prefixDisk struct{ prefix *wine.Prefix }

func (d prefixDisk) Stat(path string) (platform.FileInfo, error) {
	local, err := d.local(path)
	if err != nil {
		return platform.FileInfo{}, err
	}
	info, err := os.Lstat(local)
	if err != nil {
		return platform.FileInfo{}, err
	}
	return describe(path, info), nil
}

func describe(path string, info os.FileInfo) platform.FileInfo {
	described := platform.FileInfo{
		Path: path, Modified: info.ModTime(), Folder: info.IsDir(),
		ReadOnly: info.Mode()&0o200 == 0, Link: info.Mode()&os.ModeSymlink != 0,
	}
	if info.Mode().IsRegular() {
		described.Size = info.Size()
	}
	return described
}

func (d prefixDisk) List(path string) ([]platform.FileInfo, error) {
	local, err := d.local(path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(local)
	if err != nil {
		return nil, err
	}
	var list []platform.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // the file may have been removed meanwhile
			list = append(list, describe(strings.TrimSuffix(path, `\`)+`\`+entry.Name(), info))
		}
	}
	return list, nil
}

func (d prefixDisk) Open(path string) (io.ReadSeekCloser, error) {
	local, err := d.local(path)
	if err != nil {
		return nil, err
	}
	return os.Open(local)
}

func (d prefixDisk) Create(path string, mode platform.CreateMode) (platform.WriteFile, error) {
	flags := os.O_CREATE | os.O_WRONLY
	switch mode {
	case platform.CreateNew:
		flags |= os.O_EXCL
	case platform.CreateTruncate:
		flags |= os.O_TRUNC
	}
	local, err := d.local(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(local, flags, 0o755)
	if err != nil {
		return nil, err
	}
	if mode == platform.CreateAppend { // start at the end, since O_APPEND forbids WriteAt
		if _, err := file.Seek(0, io.SeekEnd); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return prefixFile{file}, nil
}

// prefixFile is a file of the prefix that is being written.
type prefixFile struct{ *os.File }

func (f prefixFile) SetModified(t time.Time) error { return os.Chtimes(f.Name(), time.Time{}, t) }

func (d prefixDisk) Rename(from, to string, replace bool) error {
	source, err := d.local(from)
	if err != nil {
		return err
	}
	target, err := d.local(to)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(target); err == nil && !replace {
		return fmt.Errorf("rename %s to %s: %w", from, to, fault.ErrExist)
	}
	return os.Rename(source, target)
}

func (d prefixDisk) Remove(path string) error {
	local, err := d.local(path)
	if err != nil {
		return err
	}
	return os.Remove(local)
}

func (d prefixDisk) MakeFolder(path string) error {
	local, err := d.local(path)
	if err != nil {
		return err
	}
	return os.MkdirAll(local, 0o755)
}

func (d prefixDisk) SetModified(path string, t time.Time) error {
	local, err := d.local(path)
	if err != nil {
		return err
	}
	return os.Chtimes(local, time.Time{}, t)
}

// local returns the path outside Wine. It refuses a path whose folder is, through links, outside
// the prefix. It does not check whether the last part of the path is a link.
func (d prefixDisk) local(path string) (string, error) {
	local, err := d.prefix.Path(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, fault.ErrNotExist)
	}
	resolved, err := filepath.EvalSymlinks(filepath.Dir(local))
	if err != nil {
		return local, nil // the parent is missing: the caller detects that
	}
	root, err := filepath.EvalSymlinks(d.prefix.DriveC())
	if err != nil {
		return "", err
	}
	if resolved != root && !strings.HasPrefix(resolved, root+string(filepath.Separator)) {
		return "", fmt.Errorf("%s leads out of the prefix: %w", path, syscall.EACCES)
	}
	return local, nil
}
