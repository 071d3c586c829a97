package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/tools/release/payload"
)

// windowsLayer returns a layer in the form of Windows' layers, as the only layer of an image. It has what
// Microsoft's base image for HostProcess containers has, and files in its root: Windows refuses a base layer that lacks one of
// the hives, and Windows Server 2025 one whose hives are empty files. A HostProcess container uses none of them.
func windowsLayer(files []payload.File, modified time.Time) ([]byte, error) {
	files = slices.Clone(files)
	for _, name := range []string{"DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"} {
		files = append(files, payload.File{Name: "Windows/System32/config/" + name, Content: emptyHive()})
	}
	slices.SortFunc(files, func(a, b payload.File) int { return strings.Compare(a.Name, b.Name) })
	var packed bytes.Buffer
	w := layerWriter{tar.NewWriter(&packed), modified.UTC().Truncate(time.Second), map[string]bool{}}
	for _, file := range files {
		if err := w.add(path.Join("Files", file.Name), file.Content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return packed.Bytes(), err
}

type layerWriter struct {
	*tar.Writer
	modified time.Time
	folders  map[string]bool
}

// add adds a file, and its folders before it.
func (w layerWriter) add(name string, content []byte) error {
	for i, c := range name {
		if c != '/' || w.folders[name[:i]] {
			continue
		}
		w.folders[name[:i]] = true
		if err := w.WriteHeader(w.header(name[:i], tar.TypeDir, 0)); err != nil {
			return err
		}
	}
	if err := w.WriteHeader(w.header(name, tar.TypeReg, len(content))); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// header returns the header of a file or a folder, with Windows' attributes (16: folder, 32: archive) and
// access list.
func (w layerWriter) header(name string, kind byte, size int) *tar.Header {
	attributes, inherited := "32", byte(0)
	if kind == tar.TypeDir {
		attributes, inherited = "16", objectInherit|containerInherit
	}
	return &tar.Header{
		Typeflag: kind, Name: name, Mode: 0o555, Size: int64(size), ModTime: w.modified, Format: tar.FormatPAX,
		PAXRecords: map[string]string{
			"MSWINDOWS.fileattr": attributes,
			"MSWINDOWS.rawsd":    base64.StdEncoding.EncodeToString(descriptor(inherited, fullControl, readAndRun)),
		},
	}
}

const (
	objectInherit    = 0x01
	containerInherit = 0x02
	fullControl      = 0x1f01ff
	readAndRun       = 0x1200a9
)

// descriptor returns a self-relative security descriptor: Administrators own the object, and they and SYSTEM have
// all rights; Users have others. The list of a folder or a key has the flags with which those below inherit it.
func descriptor(flags byte, all, others uint32) []byte {
	administrators, users := sid(32, 544), sid(32, 545)
	system := sid(18)
	var entries []byte
	for _, e := range []struct {
		mask uint32
		sid  []byte
	}{{all, system}, {all, administrators}, {others, users}} {
		entry := []byte{0, flags} // the type "access allowed"
		entry = binary.LittleEndian.AppendUint16(entry, uint16(8+len(e.sid)))
		entry = binary.LittleEndian.AppendUint32(entry, e.mask)
		entries = append(entries, append(entry, e.sid...)...)
	}
	list := []byte{2, 0}
	list = binary.LittleEndian.AppendUint16(list, uint16(8+len(entries)))
	list = append(append(list, 3, 0, 0, 0), entries...)

	const (
		header  = 20
		control = 0x8000 | 0x1000 | 0x0004 // self-relative, protected, has a list
	)
	head := []byte{1, 0}
	head = binary.LittleEndian.AppendUint16(head, control)
	head = binary.LittleEndian.AppendUint32(head, header)                             // the owner
	head = binary.LittleEndian.AppendUint32(head, uint32(header+len(administrators))) // the group
	head = binary.LittleEndian.AppendUint32(head, 0)                                  // no audit list
	head = binary.LittleEndian.AppendUint32(head, uint32(header+len(administrators)+len(system)))
	return slices.Concat(head, administrators, system, list)
}

// sid returns a security identifier of NT's own authority.
func sid(authorities ...uint32) []byte {
	all := []byte{1, byte(len(authorities)), 0, 0, 0, 0, 0, 5}
	for _, a := range authorities {
		all = binary.LittleEndian.AppendUint32(all, a)
	}
	return all
}
