package main

import "encoding/binary"

const (
	keyAll  = 0xf003f // KEY_ALL_ACCESS
	keyRead = 0x20019 // KEY_READ

	hiveBlock = 4096 // bytes of a hive's header, and of its only bin
	binHeader = 32
	noCell    = 0xffffffff
)

// emptyHive returns a registry hive with a root key that has no values and no keys below it, in the format
// "regf" of version 1.3, as RegSaveKeyEx writes it. All its times are zero, so its bytes never change.
// https://github.com/msuhanov/regf/blob/master/Windows%20registry%20file%20format%20specification.md
func emptyHive() []byte {
	const root = binHeader
	key := rootKey()
	security := securityCell(root + uint32(len(key)))
	binary.LittleEndian.PutUint32(key[4+44:], root+uint32(len(key)))

	bin := append([]byte("hbin"), make([]byte, binHeader-4)...)
	binary.LittleEndian.PutUint32(bin[8:], hiveBlock) // its size; 4 bytes before it, its offset is 0
	bin = append(append(bin, key...), security...)
	free := hiveBlock - len(bin)
	bin = binary.LittleEndian.AppendUint32(bin, uint32(free)) // the size of a free cell is positive
	bin = append(bin, make([]byte, free-4)...)
	return append(hiveHeader(root), bin...)
}

// hiveHeader returns the base block of a hive of one bin.
func hiveHeader(root uint32) []byte {
	header := make([]byte, hiveBlock)
	copy(header, "regf")
	for at, value := range map[int]uint32{
		4: 1, 8: 1, // the sequence numbers are equal: no write was cut off
		20: 1, 24: 3, // the version
		32: 1, // the file is loaded as a whole
		36: root,
		40: hiveBlock, // bytes of all bins
		44: 1,         // sectors in a cluster
	} {
		binary.LittleEndian.PutUint32(header[at:], value)
	}
	var sum uint32
	for at := 0; at < 508; at += 4 {
		sum ^= binary.LittleEndian.Uint32(header[at:])
	}
	binary.LittleEndian.PutUint32(header[508:], sum)
	return header
}

// rootKey returns the cell of the root key, which lacks the place of its access list.
func rootKey() []byte {
	const (
		name  = "ROOT"
		flags = 0x4 | 0x8 | 0x20 // it is a root, stays, and has a name of ASCII
	)
	body := make([]byte, 76, 76+len(name))
	copy(body, "nk")
	binary.LittleEndian.PutUint16(body[2:], flags)
	for _, at := range []int{28, 32, 40, 48} { // lists of keys, of volatile keys, of values; the class
		binary.LittleEndian.PutUint32(body[at:], noCell)
	}
	binary.LittleEndian.PutUint16(body[72:], uint16(len(name)))
	return cell(append(body, name...))
}

// securityCell returns the cell of the only access list of a hive, at its place in the bins.
func securityCell(at uint32) []byte {
	list := descriptor(containerInherit, keyAll, keyRead)
	body := append([]byte("sk"), 0, 0)
	for _, value := range []uint32{at, at, 1, uint32(len(list))} { // next, previous, users
		body = binary.LittleEndian.AppendUint32(body, value)
	}
	return cell(append(body, list...))
}

// cell returns a cell in use, whose size is negative and a multiple of 8.
func cell(body []byte) []byte {
	size := (4 + len(body) + 7) &^ 7
	all := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(-size))
	return append(all, body...)[:size]
}
