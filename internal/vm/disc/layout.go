package disc

import "slices"

// sector is the size of a logical sector and of a logical block, in bytes.
const sector = 2048

// place is the position of an entry's content.
type place struct {
	sector uint32
	length uint32 // length of a folder's records, in bytes; a file has entry.size instead
	number uint16 // number of a folder in the path table
}

// Types of volume descriptors.
const (
	primary       = 1 // ISO 9660
	supplementary = 2 // Joliet
	last          = 255
)

// volume is a tree of folders with its own descriptor and path tables.
type volume struct {
	kind        byte     // of its descriptor
	folders     []*entry // in the order of the path tables; the root is the first
	little, big uint32   // sectors of the path tables
	size        uint32   // of a path table, in bytes
}

// layout is the position of everything in the image.
type layout struct {
	volumes [2]volume
	files   []*entry
	sectors uint32 // of the whole image
}

// lay assigns sectors to the descriptors, path tables, directories and files, in this order.
func (i *Image) lay() *layout {
	l := &layout{volumes: [...]volume{
		{kind: primary, folders: inTableOrder(newRoot())},
		{kind: supplementary, folders: inTableOrder(i.root)},
	}}
	next := uint32(systemArea + len(l.volumes) + 1)
	take := func(bytes int64) uint32 {
		at := next
		next += uint32(wholeSectors(bytes) / sector)
		return at
	}
	for n := range l.volumes {
		v := &l.volumes[n]
		for _, folder := range v.folders {
			v.size += uint32(tableRecordLength(folder))
		}
		v.little, v.big = take(int64(v.size)), take(int64(v.size))
	}
	for _, v := range l.volumes {
		for _, folder := range v.folders {
			folder.at.length = uint32(wholeSectors(directoryLength(folder)))
			folder.at.sector = take(int64(folder.at.length))
		}
	}
	l.collect(i.root)
	for _, file := range l.files {
		file.at.sector = take(file.size)
	}
	l.sectors = next
	return l
}

// collect lists the files, folder by folder in the order of their names.
func (l *layout) collect(folder *entry) {
	for _, child := range folder.children {
		if child.folder {
			l.collect(child)
		} else {
			l.files = append(l.files, child)
		}
	}
}

// inTableOrder lists the folders by depth, then by parent, then by name, and numbers them. It sorts the entries
// of each folder.
func inTableOrder(root *entry) []*entry {
	folders := []*entry{root}
	for next := 0; next < len(folders); next++ {
		folders[next].at.number = uint16(next + 1) // fits: there are at most MaxEntries folders and the root
		children := folders[next].children
		slices.SortFunc(children, func(a, b *entry) int { return byParts(a.name, b.name) })
		for _, child := range children {
			if child.folder {
				folders = append(folders, child)
			}
		}
	}
	return folders
}

// directoryLength returns the length of a folder's records, in bytes. No record crosses the end of
// a sector.
func directoryLength(folder *entry) int64 {
	length := 2 * recordLength(1) // the folder itself and its parent
	for _, child := range folder.children {
		next := recordLength(len(ucs2(child.name)))
		if room := sector - length%sector; next > room {
			length += room
		}
		length += next
	}
	return int64(length)
}

func wholeSectors(bytes int64) int64 { return (bytes + sector - 1) / sector * sector }
