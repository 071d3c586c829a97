package disc

import "slices"

// sector is the size of a logical sector and of a logical block, in bytes.
const sector = 2048

// The views of a disc: two trees of folders over the same files.
const (
	primary       = iota // ISO 9660
	supplementary        // Joliet
	views
)

// place is the position of an entry's content in one view. Both views share the files' contents.
type place struct {
	sector uint32
	length uint32 // length of a folder's records, in bytes; a file has entry.size instead
	number uint16 // number of a folder in the path table
}

// layout is the position of everything in the image.
type layout struct {
	folders [views][]*entry // the folders of each view, in the order of its path tables
	files   []*entry
	tables  [views]struct {
		little, big uint32 // sectors
		size        uint32 // bytes
	}
	sectors uint32 // of the whole image
}

// lay assigns sectors to the descriptors, path tables, directories and files, in this order.
func (i *Image) lay() *layout {
	l := &layout{}
	l.walk(i.root)
	next := uint32(systemArea + len(descriptors))
	take := func(bytes int64) uint32 {
		at := next
		next += uint32(wholeSectors(bytes) / sector)
		return at
	}
	for view := range views {
		l.folders[view] = inTableOrder(i.root, view)
		size := 0
		for _, folder := range l.folders[view] {
			size += tableRecordLength(folder, view)
		}
		l.tables[view].size = uint32(size)
		l.tables[view].little = take(int64(size))
		l.tables[view].big = take(int64(size))
	}
	for view := range views {
		for _, folder := range l.folders[view] {
			folder.at[view].length = uint32(wholeSectors(directoryLength(folder, view)))
			folder.at[view].sector = take(int64(folder.at[view].length))
		}
	}
	for _, file := range l.files {
		at := take(file.size)
		for view := range views {
			file.at[view].sector = at
		}
	}
	l.sectors = next
	return l
}

// walk gives the entries their names of level 1, and lists the files, folder by folder in the order
// of their names.
func (l *layout) walk(folder *entry) {
	folder.shorten()
	for _, child := range folder.children {
		if child.folder {
			l.walk(child)
		} else {
			l.files = append(l.files, child)
		}
	}
}

// inTableOrder lists the folders by depth, then by parent, then by name, and numbers them.
func inTableOrder(root *entry, view int) []*entry {
	folders := []*entry{root}
	for next := 0; next < len(folders); next++ {
		folders[next].at[view].number = uint16(next + 1) // fits: there are at most MaxEntries folders and the root
		for _, child := range ordered(folders[next], view) {
			if child.folder {
				folders = append(folders, child)
			}
		}
	}
	return folders
}

// ordered returns a folder's entries in the order of a view.
func ordered(folder *entry, view int) []*entry {
	children := slices.Clone(folder.children)
	slices.SortFunc(children, func(a, b *entry) int {
		if view == primary {
			return byParts(a.short, b.short)
		}
		return byParts(a.name, b.name)
	})
	return children
}

// directoryLength returns the length of a folder's records, in bytes. No record crosses the end of
// a sector.
func directoryLength(folder *entry, view int) int64 {
	length := 2 * recordLength(1) // the folder itself and its parent
	for _, child := range folder.children {
		next := recordLength(len(identifier(child, view)))
		if room := sector - length%sector; next > room {
			length += room
		}
		length += next
	}
	return int64(length)
}

func wholeSectors(bytes int64) int64 { return (bytes + sector - 1) / sector * sector }
