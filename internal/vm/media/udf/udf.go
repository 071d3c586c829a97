// Package udf reads images with the file system UDF 1.02. Windows installation media have this file
// system in one partition, in sectors of 2,048 bytes. They also have an ISO 9660 file system, which
// holds only a note.
//
// An image is not trusted: each descriptor is checked by its checksum, its CRC and its
// position, each length and count has a limit, and package discfs refuses loops and names that
// lead out of a folder.
//
//   - udf.go: Open, from the anchor to the root folder
//   - descriptor.go: descriptor tags, checksums, strings, times
//   - entry.go: file entries and the extents of their content
//   - directory.go: the names in a folder
package udf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
)

// Limits of the volume's descriptors.
const (
	maxVolumeSectors = 256 // sectors of one volume descriptor sequence; Windows media have 16
	maxSequences     = 8   // the first sequence and its continuations
)

// FS is the tree of files of a UDF image.
type FS struct {
	*discfs.FS
	image  *discfs.Image
	volume *volume
}

// Label returns the label of the volume.
func (f *FS) Label() string { return f.volume.label }

// Missing returns the number of bytes of the file system that lie beyond the end of the image. They
// do no harm if they hold no file: see Whole.
func (f *FS) Missing() int64 { return f.image.Missing() }

// Open reads the descriptors of an image of size bytes. It returns a *discfs.FormatError if the
// image has no UDF file system, and a *discfs.CutShortError, *discfs.DamageError or
// *discfs.UnsupportedError if the file system cannot be read.
func Open(r io.ReaderAt, size int64) (*FS, error) {
	image := discfs.NewImage(r, size)
	if err := recognize(image); err != nil {
		return nil, err
	}
	v, err := openVolume(image)
	if err != nil {
		return nil, err
	}
	tree, err := discfs.New(image, v)
	if err != nil {
		return nil, err
	}
	return &FS{FS: tree, image: image, volume: v}, nil
}

// volume is a partition with a file system in it.
type volume struct {
	image  *discfs.Image
	start  int64 // the first sector of the partition
	length int64 // the number of sectors of the partition
	label  string
	root   longAllocation
}

// recognize looks for the mark of UDF, NSR02 or NSR03, in the sequence of volume structures that
// begins at sector 16. It returns a *discfs.FormatError if there is no mark.
func recognize(image *discfs.Image) error {
	const first, most = 16, 64
	for number := int64(first); number < first+most; number++ {
		sector, err := image.Sector(number)
		if discfs.EndsEarly(err) {
			break
		}
		if err != nil {
			return err
		}
		switch string(sector[1:6]) {
		case "NSR02", "NSR03":
			return nil
		case "CD001", "BEA01", "TEA01", "BOOT2", "CDW02":
		default:
			return &discfs.FormatError{Format: "UDF"}
		}
	}
	return &discfs.FormatError{Format: "UDF"}
}

// openVolume finds the volume by the anchor at sector 256, or by the copies of the anchor at the
// end of the image.
func openVolume(image *discfs.Image) (*volume, error) {
	last := image.Size()/discfs.SectorSize - 1
	var failures []error
	for _, sector := range []int64{256, last, last - 256} {
		anchor, err := readDescriptor(image, sector, uint32(sector), tagAnchor)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, sequence := range []int{16, 24} { // the main sequence, then its copy
			v, err := openSequence(image, anchor[sequence:])
			if err == nil {
				return v, nil
			}
			failures = append(failures, err)
		}
	}
	var unsupported *discfs.UnsupportedError
	for _, failure := range failures {
		if errors.As(failure, &unsupported) {
			return nil, unsupported
		}
	}
	return nil, fmt.Errorf("find the UDF volume: %w", failures[0])
}

// descriptors are the parts of a volume descriptor sequence that matter.
type descriptors struct {
	at         int64 // the byte offset of the sequence
	logical    []byte
	partitions map[uint16][]byte
}

// openSequence reads a volume descriptor sequence. extent holds the sequence's length in bytes
// and its first sector.
func openSequence(image *discfs.Image, extent []byte) (*volume, error) {
	found := descriptors{
		at:         int64(binary.LittleEndian.Uint32(extent[4:])) * discfs.SectorSize,
		partitions: map[uint16][]byte{},
	}
	for range maxSequences {
		length, start := binary.LittleEndian.Uint32(extent), binary.LittleEndian.Uint32(extent[4:])
		next, err := found.gather(image, int64(start), min(int64(length/discfs.SectorSize), maxVolumeSectors))
		if err != nil {
			return nil, err
		}
		if next == nil {
			return found.volume(image)
		}
		extent = next
	}
	return nil, discfs.Damage(found.at, "the volume descriptor sequence has no end")
}

// gather reads the descriptors in count sectors from start on. It returns the extent of the
// sequence's continuation, or nil if the sequence has none.
func (d *descriptors) gather(image *discfs.Image, start, count int64) (next []byte, err error) {
	for sector := start; sector < start+count; sector++ {
		descriptor, err := readDescriptor(image, sector, uint32(sector))
		if err != nil {
			return nil, err
		}
		switch tagOf(descriptor) {
		case tagTerminating:
			return nil, nil
		case tagVolumePointer:
			return descriptor[20:28], nil
		case tagPartition:
			number := binary.LittleEndian.Uint16(descriptor[22:])
			d.partitions[number] = newer(d.partitions[number], descriptor)
		case tagLogicalVolume:
			d.logical = newer(d.logical, descriptor)
		}
	}
	return nil, nil
}

// newer returns the descriptor that has the higher sequence number, or b if the numbers are equal.
func newer(a, b []byte) []byte {
	if a != nil && binary.LittleEndian.Uint32(a[16:]) > binary.LittleEndian.Uint32(b[16:]) {
		return a
	}
	return b
}

// volume checks the logical volume and its partition, and reads the file set.
func (d *descriptors) volume(image *discfs.Image) (*volume, error) {
	if d.logical == nil {
		return nil, discfs.Damage(d.at, "the volume has no logical volume descriptor")
	}
	if size := binary.LittleEndian.Uint32(d.logical[212:]); size != discfs.SectorSize {
		return nil, &discfs.UnsupportedError{
			What:   fmt.Sprintf("the UDF volume has blocks of %d bytes, not %d", size, discfs.SectorSize),
			Remedy: remedy,
		}
	}
	kind, length := d.logical[440], d.logical[441]
	if maps := binary.LittleEndian.Uint32(d.logical[268:]); maps != 1 || kind != 1 || length != 6 {
		return nil, &discfs.UnsupportedError{
			What: "the UDF volume is of a later version than 1.02, or rewritable", Remedy: remedy,
		}
	}
	partition := d.partitions[binary.LittleEndian.Uint16(d.logical[444:])]
	if partition == nil {
		return nil, discfs.Damage(d.at, "the volume names a partition that is not described")
	}
	v := &volume{
		image:  image,
		start:  int64(binary.LittleEndian.Uint32(partition[188:])),
		length: int64(binary.LittleEndian.Uint32(partition[192:])),
		label:  fixedString(d.logical[84:212]),
	}
	image.Expect((v.start + v.length) * discfs.SectorSize)
	return v, v.readFileSet(d.logical[248:264])
}

const remedy = "use the .iso file as Microsoft publishes it"

// readFileSet reads the file set at a position, and finds the root folder in it.
func (v *volume) readFileSet(at []byte) error {
	location := parseLong(at)
	sector, err := v.sector(location.block, 1)
	if err != nil {
		return fmt.Errorf("find the file set: %w", err)
	}
	set, err := readDescriptor(v.image, sector, location.block, tagFileSet)
	if err != nil {
		return err
	}
	v.root = parseLong(set[400:])
	return nil
}

// sector returns the sector on the image at which a block of the partition begins. It returns an
// error unless all of the count blocks from this block on are in the partition.
func (v *volume) sector(block uint32, count int64) (int64, error) {
	if int64(block)+count > v.length {
		return 0, discfs.Damage((v.start+int64(block))*discfs.SectorSize,
			"%d blocks from block %d lie outside of the partition of %d blocks", count, block, v.length)
	}
	return v.start + int64(block), nil
}
