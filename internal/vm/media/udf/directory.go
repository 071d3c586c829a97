package udf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
)

// maxFolderBytes bounds the data of one folder, which is read as a whole. The largest folder
// of Windows media has less than 200 kB.
const maxFolderBytes = 16 << 20

// Bits of the characteristics of a file identifier.
const (
	characterFolder  = 1 << 1
	characterDeleted = 1 << 2
	characterParent  = 1 << 3
)

// identifierSize is the size of the fixed part of a file identifier.
const identifierSize = 38

// List returns the names in a folder.
func (v *volume) List(folder discfs.Entry) ([]discfs.Child, error) {
	data, err := v.content(folder)
	if err != nil {
		return nil, err
	}
	var children []discfs.Child
	for at := 0; at < len(data); {
		child, length, err := v.identifier(data[at:])
		if err != nil {
			return nil, &discfs.DamageError{Offset: offsetOf(folder, at), Problem: err.Error()}
		}
		if child != nil {
			children = append(children, *child)
		}
		if at += length; len(children) > discfs.MaxEntries {
			return nil, discfs.Damage(folder.ID, "the folder has more than %d entries", discfs.MaxEntries)
		}
	}
	return children, nil
}

// identifier parses the file identifier at the beginning of data, and returns its child and its
// length. The child is nil if the file identifier is deleted, or if it names the parent folder.
func (v *volume) identifier(data []byte) (*discfs.Child, int, error) {
	const name = "file identifier"
	if len(data) < identifierSize {
		return nil, 0, fmt.Errorf("the last %s is cut", name)
	}
	named, private := int(data[19]), int(binary.LittleEndian.Uint16(data[36:]))
	length := (identifierSize + private + named + 3) &^ 3
	if length > len(data) {
		return nil, 0, fmt.Errorf("the %s is longer than its folder", name)
	}
	if problem := verify(data[:length], name); problem != "" {
		return nil, 0, errors.New(problem)
	}
	if tag := tagOf(data); tag != tagFileIdent {
		return nil, 0, fmt.Errorf("there is no %s, but a descriptor with tag %d", name, tag)
	}
	if data[18]&(characterDeleted|characterParent) != 0 {
		return nil, length, nil
	}
	from := identifierSize + private
	child := v.child(text(data[from:from+named]), data[18]&characterFolder != 0, parseLong(data[20:]))
	return &child, length, nil
}

// content returns the data of a folder.
func (v *volume) content(folder discfs.Entry) ([]byte, error) {
	if folder.Inline != nil {
		return folder.Inline, nil
	}
	if folder.Size > maxFolderBytes {
		return nil, discfs.Damage(folder.ID, "a folder has %d bytes of names", folder.Size)
	}
	data := make([]byte, folder.Size)
	rest := data
	for _, e := range folder.Extents {
		if e.Offset < 0 {
			return nil, discfs.Damage(folder.ID, "a folder has no recorded content")
		}
		if err := v.image.Read(rest[:e.Length], e.Offset); err != nil {
			return nil, err
		}
		rest = rest[e.Length:]
	}
	return data, nil
}

// offsetOf returns the position of a byte of a folder's data, as a byte offset on the image.
func offsetOf(folder discfs.Entry, at int) int64 {
	rest := int64(at)
	for _, e := range folder.Extents {
		if rest < e.Length {
			return e.Offset + rest
		}
		rest -= e.Length
	}
	return folder.ID + int64(at)
}
