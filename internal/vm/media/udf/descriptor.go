package udf

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
)

// Identifiers of descriptor tags, as ECMA-167 defines them.
const (
	tagAnchor        = 2
	tagVolumePointer = 3
	tagPartition     = 5
	tagLogicalVolume = 6
	tagTerminating   = 8
	tagFileSet       = 256
	tagFileIdent     = 257
	tagAllocation    = 258
	tagFileEntry     = 261
	tagExtendedEntry = 266
)

const tagSize = 16

func tagOf(descriptor []byte) uint16 { return binary.LittleEndian.Uint16(descriptor) }

// nameOf returns the name of a tag for errors.
func nameOf(tag uint16) string {
	switch tag {
	case tagAnchor:
		return "anchor"
	case tagPartition:
		return "partition descriptor"
	case tagLogicalVolume:
		return "logical volume descriptor"
	case tagFileSet:
		return "file set descriptor"
	case tagFileIdent:
		return "file identifier"
	case tagAllocation:
		return "allocation extent"
	case tagFileEntry, tagExtendedEntry:
		return "file entry"
	}
	return "volume descriptor"
}

// readDescriptor reads the descriptor in a sector and verifies its tag. block is the position that
// the tag must state. wanted lists the accepted tags; if it is empty, every tag is accepted.
func readDescriptor(image *discfs.Image, sector int64, block uint32, wanted ...uint16) ([]byte, error) {
	name := "volume descriptor"
	if len(wanted) > 0 {
		name = nameOf(wanted[0])
	}
	descriptor, err := image.Sector(sector)
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", name, err)
	}
	problem := verify(descriptor, name)
	switch tag := tagOf(descriptor); {
	case problem != "":
	case len(wanted) > 0 && !slices.Contains(wanted, tag):
		problem = fmt.Sprintf("there is no %s, but a descriptor with tag %d", name, tag)
	case binary.LittleEndian.Uint32(descriptor[12:]) != block:
		problem = fmt.Sprintf("the %s belongs to block %d, and is in block %d",
			name, binary.LittleEndian.Uint32(descriptor[12:]), block)
	}
	if problem != "" {
		return nil, &discfs.DamageError{Offset: sector * discfs.SectorSize, Problem: problem}
	}
	return descriptor, nil
}

// verify returns the problem of the tag of a descriptor, or "". The tag has a checksum of
// itself and a CRC of the bytes that follow it.
func verify(descriptor []byte, name string) string {
	var sum byte
	for i, b := range descriptor[:tagSize] {
		if i != 4 {
			sum += b
		}
	}
	if tagOf(descriptor) == 0 {
		return "there is no " + name
	}
	if sum != descriptor[4] {
		return "the checksum of the " + name + " is wrong"
	}
	length := int(binary.LittleEndian.Uint16(descriptor[10:]))
	if tagSize+length > len(descriptor) {
		return "the " + name + " is longer than its place"
	}
	if crc(descriptor[tagSize:tagSize+length]) != binary.LittleEndian.Uint16(descriptor[8:]) {
		return "the CRC of the " + name + " is wrong"
	}
	return ""
}

// crc returns the CRC-16 of ECMA-167: polynomial 0x1021, start 0.
func crc(data []byte) uint16 {
	// The remainders of all values of four bits.
	remainders := [16]uint16{
		0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
		0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
	}
	var sum uint16
	for _, b := range data {
		sum = sum<<4 ^ remainders[sum>>12^uint16(b>>4)]
		sum = sum<<4 ^ remainders[sum>>12^uint16(b&15)]
	}
	return sum
}

// text decodes OSTA CS0: a byte that states 8 or 16 bits for each character, and then the
// characters. It returns "" for text in an unknown form; "" is not permitted as a name.
func text(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	kind, data := data[0], data[1:]
	var units []uint16
	switch kind {
	case 8:
		for _, b := range data {
			units = append(units, uint16(b))
		}
	case 16:
		for ; len(data) >= 2; data = data[2:] {
			units = append(units, binary.BigEndian.Uint16(data))
		}
	}
	return string(utf16.Decode(units))
}

// fixedString decodes text in a field of fixed length, whose last byte is the length used.
func fixedString(field []byte) string {
	length := int(field[len(field)-1])
	return text(field[:min(length, len(field)-1)])
}

// timestamp decodes a time. It returns the zero time for an invalid one.
func timestamp(data []byte) time.Time {
	zone := time.UTC
	// The low twelve bits are minutes east of UTC, with a sign; -2047 means unknown.
	if minutes := int(int16(binary.LittleEndian.Uint16(data)<<4) >> 4); minutes >= -1440 && minutes <= 1440 {
		zone = time.FixedZone("", minutes*60)
	}
	year, month, day := int(int16(binary.LittleEndian.Uint16(data[2:]))), time.Month(data[4]), int(data[5])
	at := time.Date(year, month, day, int(data[6]), int(data[7]), int(data[8]), int(data[9])*10_000_000, zone)
	if at.Month() != month || at.Day() != day || year < 1 || year > 9999 {
		return time.Time{}
	}
	return at.UTC()
}
