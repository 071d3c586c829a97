package iso9660

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
)

// Limits of one folder and of one file.
const (
	maxFolderBytes = 16 << 20
	maxExtents     = 1 << 10 // each extent has up to 4 GiB
)

// recordSize is the size of the fixed part of a directory record.
const recordSize = 33

// Flags of a directory record.
const (
	flagFolder    = 1 << 1
	flagContinued = 1 << 7 // the next record has another extent of the same file
)

// record is a directory record.
type record struct {
	name     string
	flags    byte
	extent   discfs.Extent
	modified time.Time
}

// Root returns the root folder.
func (v *volume) Root() (discfs.Child, error) {
	root, _, err := v.parse(v.descriptor[156:190])
	if err != nil {
		return discfs.Child{}, &discfs.DamageError{Offset: firstDescriptor * discfs.SectorSize, Problem: err.Error()}
	}
	return child(".", []record{root}), nil
}

// child returns a child with this name. A file with several extents has a record for each extent.
func child(name string, records []record) discfs.Child {
	first := records[0]
	entry := discfs.Entry{ID: first.extent.Offset, Dir: first.flags&flagFolder != 0, Modified: first.modified}
	for _, r := range records {
		if r.extent.Length > 0 { // the position of an empty file has no meaning
			entry.Extents = append(entry.Extents, r.extent)
			entry.Size += r.extent.Length
		}
	}
	load := func() (discfs.Entry, error) { return entry, nil }
	return discfs.Child{Name: name, Dir: entry.Dir, ID: entry.ID, Load: load}
}

// List returns the names in a folder.
func (v *volume) List(folder discfs.Entry) ([]discfs.Child, error) {
	if folder.Size > maxFolderBytes || len(folder.Extents) != 1 || folder.Extents[0].Offset < 0 {
		return nil, discfs.Damage(folder.ID, "a folder has %d bytes of names", folder.Size)
	}
	data := make([]byte, folder.Size)
	if err := v.image.Read(data, folder.Extents[0].Offset); err != nil {
		return nil, err
	}
	var children []discfs.Child
	var parts []record // the records of one file with several extents that were read so far
	for start := 0; start < len(data); start += discfs.SectorSize {
		sector := data[start:min(start+discfs.SectorSize, len(data))]
		for at := 0; at < len(sector) && sector[at] != 0 && len(children) <= discfs.MaxEntries; {
			next, length, err := v.parse(sector[at:])
			if err == nil && len(parts) > 0 && (parts[0].name != next.name || len(parts) == maxExtents) {
				err = fmt.Errorf("the extents of the file %q have no end", parts[0].name)
			}
			if err != nil {
				return nil, &discfs.DamageError{Offset: folder.ID + int64(start+at), Problem: err.Error()}
			}
			at += length
			if next.name == "\x00" || next.name == "\x01" { // the folder itself, and its parent
				continue
			}
			if parts = append(parts, next); next.flags&flagContinued == 0 {
				children = append(children, child(next.name, slices.Clone(parts)))
				parts = parts[:0]
			}
		}
	}
	if len(parts) > 0 {
		return nil, discfs.Damage(folder.ID, "the extents of the file %q have no end", parts[0].name)
	}
	return children, nil
}

// parse parses the directory record at the beginning of data, and returns its length.
func (v *volume) parse(data []byte) (record, int, error) {
	length := int(data[0])
	if length < recordSize+1 || length > len(data) {
		return record{}, 0, fmt.Errorf("a directory record has the length %d", length)
	}
	named := int(data[32])
	if recordSize+named > length {
		return record{}, 0, fmt.Errorf("the name in a directory record is longer than the record")
	}
	if data[26] != 0 || data[27] != 0 {
		return record{}, 0, fmt.Errorf("a file is interleaved, which no driver disc uses")
	}
	attributes := int64(data[1])
	r := record{
		name: v.name(data[recordSize : recordSize+named]), flags: data[25], modified: timestamp(data[18:25]),
		extent: discfs.Extent{
			Offset: (int64(binary.LittleEndian.Uint32(data[2:])) + attributes) * discfs.SectorSize,
			Length: int64(binary.LittleEndian.Uint32(data[10:])),
		},
	}
	return r, length, nil
}

// name decodes a name and removes its version, such as the ;1 of README.TXT;1.
func (v *volume) name(data []byte) string {
	if len(data) == 1 && data[0] <= 1 {
		return string(data)
	}
	name := v.text(data)
	if at := strings.LastIndexByte(name, ';'); at > 0 && strings.Trim(name[at+1:], "0123456789") == "" {
		name = name[:at]
	}
	if !v.joliet {
		name = strings.TrimSuffix(name, ".")
	}
	return name
}

// timestamp decodes a time. It returns the zero time for an invalid one.
func timestamp(data []byte) time.Time {
	year, month, day := 1900+int(data[0]), time.Month(data[1]), int(data[2])
	zone := time.FixedZone("", int(int8(data[6]))*15*60)
	at := time.Date(year, month, day, int(data[3]), int(data[4]), int(data[5]), 0, zone)
	if at.Month() != month || at.Day() != day {
		return time.Time{}
	}
	return at.UTC()
}
