package udf_test

import (
	"encoding/binary"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
	"github.com/swdt-dev/swdt/internal/vm/media/udf"
)

// partitionStart is the first sector of the partition of images that tests make.
const partitionStart = 257

// image is an image with UDF 1.02 that a test makes structure by structure. Blocks are
// sectors of the partition. Block 0 has the file set, block 1 the file entry of the root.
type image struct {
	*mediatest.Sparse
}

const rootBlock = 1

// newImage returns an image of 2,048 sectors without a root folder.
func newImage() image {
	i := image{mediatest.NewSparse(2048)}
	for n, mark := range []string{"BEA01", "NSR02", "TEA01"} {
		i.Put(int64(16+n), append([]byte{0}, mark...))
	}
	anchor := make([]byte, 512)
	copy(anchor[16:], extent(16*2048, 32))
	copy(anchor[24:], extent(16*2048, 64))
	i.Put(256, tagged(anchor, 2, 256))
	for _, start := range []int64{32, 64} {
		i.Put(start, tagged(partition(), 5, uint32(start)))
		i.Put(start+1, tagged(logicalVolume(), 6, uint32(start+1)))
		i.Put(start+2, tagged(make([]byte, 512), 8, uint32(start+2)))
	}
	set := make([]byte, 512)
	copy(set[400:], long(2048, rootBlock))
	i.block(0, tagged(set, 256, 0))
	return i
}

func partition() []byte {
	data := make([]byte, 512)
	copy(data[25:], "+NSR02")
	binary.LittleEndian.PutUint32(data[188:], partitionStart)
	binary.LittleEndian.PutUint32(data[192:], 2048-partitionStart)
	return data
}

func logicalVolume() []byte {
	data := make([]byte, 446)
	copy(data[84:], "\x08LABEL")
	data[84+127] = 6
	binary.LittleEndian.PutUint32(data[212:], 2048)
	copy(data[248:], long(2048, 0))
	binary.LittleEndian.PutUint32(data[264:], 6)
	binary.LittleEndian.PutUint32(data[268:], 1)
	copy(data[440:], []byte{1, 6, 1, 0, 0, 0})
	return data
}

func (i image) block(number uint32, data []byte) { i.Put(partitionStart+int64(number), data) }

// folder writes a folder with a file entry in a block, and its names in the block after it.
func (i image) folder(block uint32, names ...[]byte) {
	var data []byte
	for _, name := range names {
		data = append(data, name...)
	}
	i.block(block+1, data)
	i.block(block, fileEntry(block, 4, 0, int64(len(data)), short(uint32(len(data)), block+1)))
}

// file writes a file with content of up to 2,048 bytes.
func (i image) file(block uint32, content string) {
	i.block(block+1, []byte(content))
	i.block(block, fileEntry(block, 5, 0, int64(len(content)), short(uint32(len(content)), block+1)))
}

// open opens the image.
func (i image) open() (*udf.FS, error) { return udf.Open(i, i.Size) }

// fileEntry returns the file entry of a type, with allocation descriptors of a form.
func fileEntry(block uint32, kind byte, form uint16, size int64, allocations []byte) []byte {
	data := append(make([]byte, 176), allocations...)
	binary.LittleEndian.PutUint16(data[20:], 4)
	data[27] = kind
	binary.LittleEndian.PutUint16(data[34:], form)
	binary.LittleEndian.PutUint64(data[56:], uint64(size))
	copy(data[84:], []byte{0x3c, 0x10, 0xe6, 0x07, 3, 4, 5, 6, 7, 0, 0, 0}) // 2022-03-04 05:06:07, an hour east
	binary.LittleEndian.PutUint32(data[172:], uint32(len(allocations)))
	return tagged(data, 261, block)
}

// extendedEntry returns a fileEntry in the form of later versions.
func extendedEntry(block uint32, kind byte, form uint16, size int64, allocations []byte) []byte {
	old := fileEntry(block, kind, form, size, nil)
	data := append(make([]byte, 216), allocations...)
	copy(data, old[:72])
	copy(data[92:], old[84:96])
	binary.LittleEndian.PutUint32(data[212:], uint32(len(allocations)))
	return tagged(data, 266, block)
}

// identifier returns a name in a folder, whose file entry is in a block.
func identifier(name string, characteristics byte, block uint32) []byte {
	encoded := append([]byte{8}, name...)
	for _, r := range name {
		if r > 0x7f {
			encoded = []byte{16}
			for _, unit := range utf16.Encode([]rune(name)) {
				encoded = binary.BigEndian.AppendUint16(encoded, unit)
			}
		}
	}
	return rawIdentifier(encoded, characteristics, block)
}

func rawIdentifier(name []byte, characteristics byte, block uint32) []byte {
	data := append(make([]byte, 38), name...)
	binary.LittleEndian.PutUint16(data[16:], 1)
	data[18], data[19] = characteristics, byte(len(name))
	copy(data[20:], long(2048, block))
	data = append(data, make([]byte, (4-len(data)%4)%4)...)
	return tagged(data, 257, 0)
}

// tagged completes the tag at the beginning of a descriptor.
func tagged(data []byte, tag uint16, block uint32) []byte {
	binary.LittleEndian.PutUint16(data, tag)
	binary.LittleEndian.PutUint16(data[2:], 2)
	binary.LittleEndian.PutUint16(data[8:], checksum16(data[16:]))
	binary.LittleEndian.PutUint16(data[10:], uint16(len(data)-16))
	binary.LittleEndian.PutUint32(data[12:], block)
	data[4] = checksum8(data)
	return data
}

func checksum8(tag []byte) (sum byte) {
	for n, b := range tag[:16] {
		if n != 4 {
			sum += b
		}
	}
	return sum
}

// checksum16 is the CRC of descriptors, computed bit by bit as a polynomial remainder.
func checksum16(data []byte) uint16 {
	var remainder uint32
	for _, b := range append(append([]byte{}, data...), 0, 0) {
		for bit := 7; bit >= 0; bit-- {
			remainder = remainder<<1 | uint32(b>>bit&1)
			if remainder&0x10000 != 0 {
				remainder ^= 0x11021
			}
		}
	}
	return uint16(remainder)
}

func extent(length, start uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, length), start)
}

// short returns a short allocation descriptor; the top two bits of length are its type.
func short(length, block uint32) []byte { return extent(length, block) }

// long returns a long allocation descriptor.
func long(length, block uint32) []byte { return append(extent(length, block), make([]byte, 8)...) }

const (
	isFolder  = 1 << 1
	isDeleted = 1 << 2
	isParent  = 1 << 3
)

// sample returns an image with each kind of structure: short, long and inline allocation, an
// extended entry, a continuation, names of 8 and 16 bits, a deleted name, nested folders.
func sample() image {
	i := newImage()
	i.folder(rootBlock,
		identifier("", isFolder|isParent, rootBlock), identifier("gone", isDeleted, 99),
		identifier("Sources", isFolder, 4), identifier("long.txt", 0, 8), identifier("inline.txt", 0, 10),
		identifier("extended.txt", 0, 12), identifier("empty", 0, 14), identifier("Ünïcødé 漢字 😀.txt", 0, 15),
		identifier("many.bin", 0, 18))
	i.folder(4, identifier("install.wim", 0, 6))
	i.file(6, "wim")
	i.block(9, []byte("long"))
	i.block(8, fileEntry(8, 5, 1, 4, long(4, 9)))
	i.block(10, fileEntry(10, 5, 3, 6, []byte("inline")))
	i.block(13, []byte("extended"))
	i.block(12, extendedEntry(12, 5, 0, 8, short(8, 13)))
	i.block(14, fileEntry(14, 5, 0, 0, nil))
	i.file(15, "unicode")
	// A file of three extents, of which the second is not recorded, and the third is in a
	// continuation.
	i.block(20, []byte("first"))
	i.block(21, []byte("third"))
	continuation := append(make([]byte, 24), short(5, 21)...)
	binary.LittleEndian.PutUint32(continuation[20:], 8)
	i.block(22, tagged(continuation, 258, 22))
	i.block(18, fileEntry(18, 5, 0, 2048+2048+5, append(append(short(2048, 20), short(2048|1<<30, 0)...),
		short(2048|3<<30, 22)...)))
	return i
}
