package upgradecheck

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// Folder reads the files below a folder: manifests, configuration files, scripts. Hidden folders are left out. prefix
// is written before each name.
func (r *Reader) Folder(folder fs.FS, prefix string) error {
	return documents.Folder(folder, documents.Files{
		Wanted:  isRead,
		Read:    func(name string, content []byte) { r.File(prefix+name, content) },
		Skipped: func(name, why string) { r.unread(Place{File: prefix + name}, why) },
	})
}

// Stream reads documents of a stream, such as stdin, whose name is shown as that of a file.
func (r *Reader) Stream(name string, content []byte) {
	r.Texts++
	r.Documents(content, Place{File: name})
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
