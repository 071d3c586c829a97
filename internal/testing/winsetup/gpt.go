package winsetup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"unicode/utf16"
)

const (
	sector       = 512
	tableEntries = 128
	entrySize    = 128
	tableSectors = tableEntries * entrySize / sector
)

// kinds returns the types of partitions as GUIDs, with the bytes in the order in which a disk has them.
func kinds() map[string][16]byte {
	return map[string][16]byte{
		"EFI":     guid(0xc12a7328, 0xf81f, 0x11d2, [8]byte{0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b}),
		"MSR":     guid(0xe3c9e316, 0x0b5c, 0x4db8, [8]byte{0x81, 0x7d, 0xf9, 0x2d, 0xf0, 0x02, 0x15, 0xae}),
		"Primary": guid(0xebd0a0a2, 0xb9e5, 0x4433, [8]byte{0x87, 0xc0, 0x68, 0xb6, 0xb7, 0x26, 0x99, 0xc7}),
	}
}

func guid(a uint32, b, c uint16, d [8]byte) (id [16]byte) {
	binary.LittleEndian.PutUint32(id[:], a)
	binary.LittleEndian.PutUint16(id[4:], b)
	binary.LittleEndian.PutUint16(id[6:], c)
	copy(id[8:], d[:])
	return id
}

// WriteTable writes a GUID partition table to a disk of size bytes. windows is the name of the
// partition in which Windows is installed; the other partitions get Microsoft's names.
func WriteTable(disk io.WriterAt, size int64, partitions []Partition, windows string) error {
	names := map[string]string{
		"EFI": "EFI system partition", "MSR": "Microsoft reserved partition", "Primary": "Basic data partition",
	}
	table := make([]byte, tableEntries*entrySize)
	for i, p := range partitions {
		entry := table[i*entrySize:]
		kind := kinds()[p.Kind]
		copy(entry, kind[:])
		id := guid(0x53574454, 0, 0, [8]byte{7: byte(i + 1)})
		copy(entry[16:], id[:])
		binary.LittleEndian.PutUint64(entry[32:], uint64(p.Offset/sector))
		binary.LittleEndian.PutUint64(entry[40:], uint64((p.Offset+p.Size)/sector-1))
		name := names[p.Kind]
		if p.Windows {
			name = windows
		}
		for j, unit := range utf16.Encode([]rune(name)) {
			binary.LittleEndian.PutUint16(entry[56+2*j:], unit)
		}
	}
	last := size/sector - 1
	for _, part := range []struct {
		data []byte
		at   int64
	}{
		{protection(last), 0},
		{header(table, 1, last, 2, last), 1},
		{table, 2},
		{table, last - tableSectors},
		{header(table, last, 1, last-tableSectors, last), last},
	} {
		if _, err := disk.WriteAt(part.data, part.at*sector); err != nil {
			return fmt.Errorf("write the partition table: %w", err)
		}
	}
	return nil
}

// protection returns the first sector of the disk. To old programs, which do not read GUID partition
// tables, this sector shows a disk without free space.
func protection(last int64) []byte {
	data := make([]byte, sector)
	entry := data[446:]
	entry[2], entry[4] = 2, 0xee
	copy(entry[5:], []byte{0xff, 0xff, 0xff})
	binary.LittleEndian.PutUint32(entry[8:], 1)
	binary.LittleEndian.PutUint32(entry[12:], uint32(min(last, 0xffffffff)))
	data[510], data[511] = 0x55, 0xaa
	return data
}

// header returns one of the two headers of a table. Its arguments are sectors of the disk: the sector
// of this header (at) and of the other header (other), the first sector of the table (tableAt), and
// the last sector of the disk (last).
func header(table []byte, at, other, tableAt, last int64) []byte {
	var out bytes.Buffer
	out.WriteString("EFI PART")
	id := guid(0x53574454, 0, 0, [8]byte{})
	for _, value := range []any{
		uint32(0x00010000), uint32(92), uint32(0), uint32(0), uint64(at), uint64(other),
		uint64(2 + tableSectors), uint64(last - tableSectors - 1), id, uint64(tableAt),
		uint32(tableEntries), uint32(entrySize), crc32.ChecksumIEEE(table),
	} {
		_ = binary.Write(&out, binary.LittleEndian, value) // writing numbers to a buffer does not fail
	}
	data := out.Bytes()
	binary.LittleEndian.PutUint32(data[16:], crc32.ChecksumIEEE(data))
	return append(data, make([]byte, sector-len(data))...)
}
