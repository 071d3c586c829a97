package upgradecheck

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// The bounds of a folder.
const (
	mostFiles = 20_000
	mostBytes = 4 << 20 // of a file
)

// TooManyFilesError reports a folder that has more files than Folder reads.
type TooManyFilesError struct{}

func (e *TooManyFilesError) Error() string {
	return "the folder has more than 20000 files: name a smaller one"
}

// Folder reads the files below a folder: manifests, configuration files, scripts. Hidden folders are left out. prefix
// is written before each name.
func (r *Reader) Folder(folder fs.FS, prefix string) error {
	count := 0
	return fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if name == "." {
				return err
			}
			r.unread(Place{File: prefix + name}, plainReason(err))
			return nil
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !isRead(name):
			return nil
		}
		if count++; count > mostFiles {
			return &TooManyFilesError{}
		}
		if info, err := entry.Info(); err == nil && info.Size() > mostBytes {
			r.unread(Place{File: prefix + name}, "has more than 4 MiB")
			return nil
		}
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			r.unread(Place{File: prefix + name}, plainReason(err))
			return nil
		}
		r.File(prefix+name, content)
		return nil
	})
}

// plainReason returns a file error without the file's name, which its place has.
func plainReason(err error) string {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err.Error()
	}
	return err.Error()
}

// isRead reports whether files of this name can have settings.
func isRead(name string) bool {
	if strings.HasSuffix(strings.ToLower(name), ".tests.ps1") { // tests of Pester
		return false
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json", ".conf", ".toml", ".env", ".ps1", ".psm1", ".cmd", ".bat", ".sh", ".tmpl", ".tpl", ".j2":
		return true
	}
	return false
}

// File reads one file, whose name decides what it is.
func (r *Reader) File(name string, content []byte) {
	r.Texts++
	place := Place{File: name}
	base, extension := strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/"))), strings.ToLower(path.Ext(name))
	switch {
	case base == "kubeadm-flags.env":
		r.KubeadmFlags(string(content), place)
	case extension == ".env":
		r.variables(string(content), "KUBELET_", place)
	case extension == ".toml":
		if bytes.Contains(content, []byte("plugins")) && bytes.Contains(content, []byte("containerd")) {
			r.Containerd(content, "", place)
		}
	case extension == ".yaml" || extension == ".yml" || extension == ".json" || extension == ".conf":
		r.Documents(content, place)
	default:
		decoded, err := windowstext.Decode(content)
		if err != nil {
			r.Unreadable(place, err)
			return
		}
		r.Script(decoded.Content, place)
	}
}
