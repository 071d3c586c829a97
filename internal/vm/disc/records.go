package disc

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// systemArea is the number of sectors at the beginning of an image that ISO 9660 leaves to other
// standards.
const systemArea = 16

// jolietEscape announces UCS-2 level 3 with the high byte first.
const jolietEscape = "%/E"

// descriptor returns the descriptor of a volume, in an image of this number of sectors.
func (i *Image) descriptor(v volume, sectors uint32) []byte {
	out := make([]byte, sector)
	out[0] = v.kind
	copy(out[1:], "CD001\x01")
	text := func(at, length int, value string) { copy(out[at:at+length], padded(value, length, v.kind)) }
	text(8, 32, "")
	text(40, 32, i.label)
	bothEndian32(out[80:], sectors)
	if v.kind == supplementary {
		copy(out[88:], jolietEscape)
	}
	bothEndian16(out[120:], 1) // volumes of the set
	bothEndian16(out[124:], 1) // number of this volume
	bothEndian16(out[128:], sector)
	bothEndian32(out[132:], v.size)
	binary.LittleEndian.PutUint32(out[140:], v.little)
	binary.BigEndian.PutUint32(out[148:], v.big)
	copy(out[156:], i.record(v.folders[0], []byte{0}))
	text(190, 128, "") // set
	text(318, 128, "") // publisher
	text(446, 128, "") // preparer
	text(574, 128, "") // application
	text(702, 37, "")  // names of the files about copyright, content and bibliography
	text(739, 37, "")
	text(776, 37, "")
	copy(out[813:], longTime(i.stamp)) // creation time
	copy(out[830:], longTime(i.stamp)) // modification time
	copy(out[847:], longTime(time.Time{}))
	copy(out[864:], longTime(time.Time{}))
	out[881] = 1 // version of this structure
	return out
}

// terminator returns the descriptor that ends the list of volume descriptors.
func terminator() []byte {
	out := make([]byte, sector)
	out[0] = last
	copy(out[1:], "CD001\x01")
	return out
}

// pathTable returns the list of folders of a volume.
func (v volume) pathTable(order binary.AppendByteOrder) []byte {
	var out []byte
	for _, folder := range v.folders {
		name := folderIdentifier(folder)
		out = append(out, byte(len(name)), 0)
		out = order.AppendUint32(out, folder.at.sector)
		out = order.AppendUint16(out, folder.parent.at.number)
		out = append(out, name...)
		if len(name)%2 == 1 {
			out = append(out, 0)
		}
	}
	return out
}

func tableRecordLength(folder *entry) int {
	length := len(folderIdentifier(folder))
	return 8 + length + length%2
}

// directory returns the records of a folder.
func (i *Image) directory(folder *entry) []byte {
	out := i.record(folder, []byte{0})
	out = append(out, i.record(folder.parent, []byte{1})...)
	for _, child := range folder.children {
		next := i.record(child, ucs2(child.name)) // without a version, as on the discs that other programs make
		if room := sector - len(out)%sector; len(next) > room {
			out = append(out, make([]byte, room)...)
		}
		out = append(out, next...)
	}
	return out
}

// record returns an entry's directory record under an identifier.
func (i *Image) record(e *entry, id []byte) []byte {
	out := make([]byte, recordLength(len(id)))
	out[0] = byte(len(out))
	bothEndian32(out[2:], e.at.sector)
	if e.folder {
		bothEndian32(out[10:], e.at.length)
		out[25] = 2
	} else {
		bothEndian32(out[10:], uint32(e.size))
	}
	copy(out[18:], shortTime(i.stamp))
	bothEndian16(out[28:], 1)
	out[32] = byte(len(id))
	copy(out[33:], id)
	return out
}

// recordLength returns the length of a directory record whose identifier has this length. The
// length of a record is even.
func recordLength(identifier int) int { return (33 + identifier + 1) / 2 * 2 }

func folderIdentifier(folder *entry) []byte {
	if folder.parent == folder {
		return []byte{0}
	}
	return ucs2(folder.name)
}

// padded returns text, filled up with spaces to the length, in the encoding of a kind of
// volume.
func padded(text string, length int, kind byte) []byte {
	if kind == primary {
		return []byte(text + strings.Repeat(" ", length-len(text)))
	}
	out := ucs2(text + strings.Repeat(" ", length/2-len(text)))
	return slices.Concat(out, make([]byte, length%2))
}

func ucs2(text string) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.BigEndian.AppendUint16(out, unit)
	}
	return out
}

// shortTime returns the seven bytes of a time in a directory.
func shortTime(t time.Time) []byte {
	return []byte{
		byte(t.Year() - 1900), byte(t.Month()), byte(t.Day()),
		byte(t.Hour()), byte(t.Minute()), byte(t.Second()), 0,
	}
}

// longTime returns the seventeen bytes of a time in a descriptor; the zero time stands for an
// unknown time.
func longTime(t time.Time) []byte {
	if t.IsZero() {
		return append([]byte(strings.Repeat("0", 16)), 0)
	}
	return append([]byte(fmt.Sprintf("%s00", t.Format("20060102150405"))), 0)
}

func bothEndian16(out []byte, value uint16) {
	binary.LittleEndian.PutUint16(out, value)
	binary.BigEndian.PutUint16(out[2:], value)
}

func bothEndian32(out []byte, value uint32) {
	binary.LittleEndian.PutUint32(out, value)
	binary.BigEndian.PutUint32(out[4:], value)
}
