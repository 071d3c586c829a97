package simulated

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/pe"
	"encoding/hex"
	"encoding/json"
	"io"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/swdt-dev/swdt/internal/wire/throwaway"
)

// Image is an executable file with its properties. The properties determine which program the
// machine runs for the file.
type Image struct {
	Path         string // path of the file
	Size         int64
	SHA256       func() string // lower-case hex; computed at the first call
	PE           bool          // an executable for Windows
	Architecture string        // processor architecture, as GOARCH; empty: unknown
	// Name is the name in Binary's note. Without a note, it is the main package of a known Go
	// program, or else the file's name without its extension.
	Name    string
	Version string // empty: unknown
	Fault   Fault
	Note    *BinarySpec // the note in the executable; nil if Binary did not make the executable
	// Throwaway returns the SHA-256 of the agent of which this executable is the throw-away program;
	// nil: the executable is another program.
	Throwaway func() string
}

// inspect parses a file; the result is kept until the file changes. The caller
// holds the lock.
func (f *file) inspect() *Image {
	if f.image != nil && f.image.Path == f.path() {
		return f.image
	}
	r := f.content.reader()
	image := &Image{Path: f.path(), Size: r.size, SHA256: sync.OnceValue(r.sha256)}
	image.inspectPE(r)
	if _, agent, ok := throwaway.Read(r, r.size); ok {
		image.Throwaway = sync.OnceValue(contentReader{chunks: r.chunks, size: agent}.sha256)
	}
	if image.PE && !image.readNote(r) {
		image.readBuildInfo(r)
	}
	f.image = image
	return image
}

func (r contentReader) sha256() string {
	hash := sha256.New()
	_, _ = io.Copy(hash, r.stream())
	return hex.EncodeToString(hash.Sum(nil))
}

func (i *Image) inspectPE(r contentReader) {
	f, err := pe.NewFile(r)
	if err != nil {
		return
	}
	defer f.Close()
	i.PE = f.Characteristics&pe.IMAGE_FILE_DLL == 0
	for _, section := range f.Sections {
		if int64(section.Offset)+int64(section.Size) > r.size {
			i.PE = false // truncated
		}
	}
	for architecture, machine := range machines {
		if machine == f.Machine {
			i.Architecture = architecture
		}
	}
	i.Name, _, _ = strings.Cut(fold(baseName(i.Path)), ".")
}

// readNote finds the note that Binary wrote.
func (i *Image) readNote(r contentReader) bool {
	head := make([]byte, min(r.size, noteOffset+noteLimit))
	_, _ = r.ReadAt(head, 0)
	if len(head) <= noteOffset || !bytes.HasPrefix(head[noteOffset:], []byte(noteMagic)) {
		return false
	}
	text, _, _ := bytes.Cut(head[noteOffset+len(noteMagic):], []byte{0})
	note := &BinarySpec{}
	if json.Unmarshal(text, note) != nil {
		return false
	}
	i.Note, i.Version, i.Fault = note, note.Version, note.Fault
	if note.Name != "" {
		i.Name = note.Name
	}
	return true
}

var (
	versionFlag = regexp.MustCompile(`-X[= ]'?"?(\S*?\.(?:Version|version|gitVersion))=([^\s'"]+)`)
	nameFlag    = regexp.MustCompile(`-X[= ]'?"?main\.name=([^\s'"]+)`)
	faultFlag   = regexp.MustCompile(`-X[= ]'?"?main\.fault=([^\s'"]+)`)
)

// readBuildInfo finds the data that the Go linker wrote. A program that was built with -trimpath
// has no -ldflags in the data, so readBuildInfo uses the module's version.
func (i *Image) readBuildInfo(r contentReader) {
	info, err := buildinfo.Read(r)
	if err != nil {
		return
	}
	switch name := path.Base(info.Path); name {
	case "kubelet", "containerd", "kube-proxy", "kubeadm", "kube-log-runner":
		i.Name = name
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		i.Version = v
	}
	// Programs of other modules, such as the lab's kubelet, have that module's
	// version.
	for _, dependency := range info.Deps {
		if strings.HasPrefix(info.Path, dependency.Path+"/") {
			i.Version = dependency.Version
		}
	}
	for _, setting := range info.Settings {
		if setting.Key != "-ldflags" {
			continue
		}
		if m := versionFlag.FindStringSubmatch(setting.Value); m != nil {
			i.Version = m[2]
		}
		if m := nameFlag.FindStringSubmatch(setting.Value); m != nil {
			i.Name = m[1]
		}
		if m := faultFlag.FindStringSubmatch(setting.Value); m != nil {
			i.Fault = Fault(m[1])
		}
	}
}

// runsOn reports whether this machine can execute the image ("How emulation works on Arm" on learn.microsoft.com; WOW64).
func (i *Image) runsOn(architecture string) bool {
	switch {
	case !i.PE:
		return false
	case i.Architecture == architecture:
		return true
	case architecture == "arm64":
		return i.Architecture == "386" || i.Architecture == "amd64" // emulated
	}
	return architecture == "amd64" && i.Architecture == "386"
}
