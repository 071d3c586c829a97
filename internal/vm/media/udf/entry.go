package udf

import (
	"encoding/binary"

	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
)

// maxContinuations bounds the sectors that only hold further extents of one file. An extent has
// less than 1 GiB, so install.wim has five to eight extents; a file entry has room for 234 extents.
const maxContinuations = 4

// Types of files in a file entry.
const (
	typeFolder = 4
	typeFile   = 5
)

// longAllocation is a position in a partition.
type longAllocation struct {
	length uint32
	block  uint32
}

func parseLong(data []byte) longAllocation {
	return longAllocation{length: binary.LittleEndian.Uint32(data), block: binary.LittleEndian.Uint32(data[4:])}
}

// Root returns the root folder.
func (v *volume) Root() (discfs.Child, error) {
	root := v.child(".", true, v.root)
	entry, err := root.Load()
	if err == nil && !entry.Dir {
		err = discfs.Damage(entry.ID, "the root is not a folder")
	}
	return root, err
}

func (v *volume) child(name string, dir bool, at longAllocation) discfs.Child {
	return discfs.Child{
		Name: name, Dir: dir, ID: (v.start + int64(at.block)) * discfs.SectorSize,
		Load: func() (discfs.Entry, error) { return v.load(at, dir) },
	}
}

// load reads the file entry at a position. dir reports whether the name in the parent folder
// describes a folder; the file entry must agree.
func (v *volume) load(at longAllocation, dir bool) (discfs.Entry, error) {
	sector, err := v.sector(at.block, 1)
	if err != nil {
		return discfs.Entry{}, err
	}
	data, err := readDescriptor(v.image, sector, at.block, tagFileEntry, tagExtendedEntry)
	if err != nil {
		return discfs.Entry{}, err
	}
	damage := func(format string, args ...any) error {
		return discfs.Damage(sector*discfs.SectorSize, format, args...)
	}
	fixed, modified := 176, 84
	if tagOf(data) == tagExtendedEntry {
		fixed, modified = 216, 92
	}
	if strategy := binary.LittleEndian.Uint16(data[20:]); strategy != 4 {
		return discfs.Entry{}, damage("the file entry has the strategy %d, not 4", strategy)
	}
	kind := data[27]
	entry := discfs.Entry{
		ID: sector * discfs.SectorSize, Dir: kind == typeFolder, Irregular: kind != typeFolder && kind != typeFile,
		Size: int64(binary.LittleEndian.Uint64(data[56:])), Modified: timestamp(data[modified:]),
	}
	if entry.Size < 0 {
		return discfs.Entry{}, damage("the file entry states a size of %d bytes", uint64(entry.Size))
	}
	if entry.Dir != dir {
		return discfs.Entry{}, damage("the name and the file entry disagree on whether this is a folder")
	}
	attributes := int64(binary.LittleEndian.Uint32(data[fixed-8:]))
	allocations := int64(binary.LittleEndian.Uint32(data[fixed-4:]))
	from, to := int64(fixed)+attributes, int64(fixed)+attributes+allocations
	if to > int64(len(data)) {
		return discfs.Entry{}, damage("the file entry is longer than its sector")
	}
	form := binary.LittleEndian.Uint16(data[34:]) & 7
	if form == 3 {
		if entry.Size != allocations {
			return discfs.Entry{}, damage("the file entry states %d bytes, and holds %d", entry.Size, allocations)
		}
		entry.Inline = data[from:to]
		return entry, nil
	}
	entry.Extents, err = v.extents(data[from:to], form, entry.Size, damage)
	return entry, err
}

// extents reads allocation descriptors. If a file entry has no room for all of its descriptors,
// they continue in other sectors. form is 0 for short descriptors, and 1 for long ones. The lengths
// of the extents must add up to size bytes.
func (v *volume) extents(
	data []byte, form uint16, size int64, damage func(string, ...any) error,
) ([]discfs.Extent, error) {
	step := 8 << form
	if form > 1 {
		return nil, damage("the file entry has allocation descriptors of the unknown form %d", form)
	}
	var all []discfs.Extent
	continuations, rest := 0, size
	for len(data) >= step && rest > 0 {
		length, block := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
		data = data[step:]
		kind, bytes := length>>30, int64(length&(1<<30-1))
		if bytes == 0 {
			break
		}
		if kind == 3 {
			if continuations++; continuations > maxContinuations {
				return nil, damage("the extents of the file have no end")
			}
			var err error
			if data, err = v.continuation(block); err != nil {
				return nil, err
			}
			continue
		}
		extent := discfs.Extent{Offset: -1, Length: min(bytes, rest)}
		if kind == 0 {
			sector, err := v.sector(block, (bytes+discfs.SectorSize-1)/discfs.SectorSize)
			if err != nil {
				return nil, err
			}
			extent.Offset = sector * discfs.SectorSize
		}
		all, rest = append(all, extent), rest-extent.Length
	}
	if rest > 0 {
		return nil, damage("the file entry states %d bytes, and its extents hold %d", size, size-rest)
	}
	return all, nil
}

// continuation returns the allocation descriptors in a block that holds nothing else.
func (v *volume) continuation(block uint32) ([]byte, error) {
	const fixed = 24
	sector, err := v.sector(block, 1)
	if err != nil {
		return nil, err
	}
	data, err := readDescriptor(v.image, sector, block, tagAllocation)
	if err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(data[20:]))
	if fixed+length > int64(len(data)) {
		return nil, discfs.Damage(sector*discfs.SectorSize, "the allocation extent is longer than its sector")
	}
	return data[fixed : fixed+length], nil
}
