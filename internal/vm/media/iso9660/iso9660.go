// Package iso9660 reads images with the file system ISO 9660, which the driver disc
// virtio-win has. It reads the names of the Joliet extension, as Windows does, or the plain
// names if an image has no Joliet. It does not read Rock Ridge names.
//
//   - iso9660.go: Open, the volume descriptors
//   - directory.go: the records of folders
package iso9660

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
)

// firstDescriptor is the first sector of the volume descriptors, and maxDescriptors bounds their
// number.
const (
	firstDescriptor = 16
	maxDescriptors  = 64
)

// Types of volume descriptors.
const (
	typePrimary       = 1
	typeSupplementary = 2
	typeEnd           = 255
)

// FS is the tree of files of an ISO 9660 image.
type FS struct {
	*discfs.FS
	volume *volume
	image  *discfs.Image
}

// Label returns the label of the volume.
func (f *FS) Label() string { return f.volume.label }

// Joliet reports whether the names are those of the Joliet extension.
func (f *FS) Joliet() bool { return f.volume.joliet }

// Missing returns the number of bytes of the volume that lie beyond the end of the image. They do
// no harm if they hold no file: see Whole.
func (f *FS) Missing() int64 { return f.image.Missing() }

// Open reads the volume descriptors of an image of size bytes. It returns a *discfs.FormatError if
// the image has no ISO 9660 file system, and a *discfs.CutShortError, *discfs.DamageError or
// *discfs.UnsupportedError if the file system cannot be read.
func Open(r io.ReaderAt, size int64) (*FS, error) {
	image := discfs.NewImage(r, size)
	volumes, err := Descriptors(image)
	if err != nil {
		return nil, err
	}
	v, err := choose(image, volumes)
	if err != nil {
		return nil, err
	}
	image.Expect(int64(binary.LittleEndian.Uint32(v.descriptor[80:])) * discfs.SectorSize)
	tree, err := discfs.New(image, v)
	if err != nil {
		return nil, err
	}
	return &FS{FS: tree, volume: v, image: image}, nil
}

// Descriptors returns the volume descriptors of an image, a sector each, without the descriptor
// that ends the list. It returns a *discfs.FormatError if the first descriptor is missing or is no
// volume descriptor.
func Descriptors(image *discfs.Image) ([][]byte, error) {
	var all [][]byte
	for number := int64(firstDescriptor); number < firstDescriptor+maxDescriptors; number++ {
		sector, err := image.Sector(number)
		if err != nil && !discfs.EndsEarly(err) {
			return nil, err
		}
		if err != nil || string(sector[1:6]) != "CD001" {
			if number == firstDescriptor {
				return nil, &discfs.FormatError{Format: "ISO 9660"}
			}
			return all, nil
		}
		if sector[0] == typeEnd {
			return all, nil
		}
		all = append(all, sector)
	}
	return all, nil
}

// volume is one of the file systems of an image. The Joliet volume and the primary volume of an
// image have the same files.
type volume struct {
	image      *discfs.Image
	descriptor []byte
	joliet     bool
	label      string
}

// choose returns the Joliet volume, or else the primary one.
func choose(image *discfs.Image, descriptors [][]byte) (*volume, error) {
	var chosen *volume
	label := ""
	for _, descriptor := range descriptors {
		switch {
		case descriptor[0] == typePrimary && chosen == nil:
			chosen = &volume{image: image, descriptor: descriptor}
			label = chosen.text(descriptor[40:72])
		case descriptor[0] == typeSupplementary && isJoliet(descriptor) && (chosen == nil || !chosen.joliet):
			chosen = &volume{image: image, descriptor: descriptor, joliet: true}
		}
	}
	if chosen == nil {
		return nil, discfs.Damage(firstDescriptor*discfs.SectorSize, "the image has no primary volume descriptor")
	}
	if size := binary.LittleEndian.Uint16(chosen.descriptor[128:]); size != discfs.SectorSize {
		return nil, &discfs.UnsupportedError{
			What:   fmt.Sprintf("the volume has blocks of %d bytes, not %d", size, discfs.SectorSize),
			Remedy: "use the .iso file as it is published",
		}
	}
	// The label of the primary volume is preferred: the label of a Joliet volume has at most 16
	// characters.
	if label == "" {
		label = chosen.text(chosen.descriptor[40:72])
	}
	chosen.label = strings.TrimRight(label, " \x00")
	return chosen, nil
}

// isJoliet reports whether the escape sequences of a supplementary descriptor select UCS-2.
func isJoliet(descriptor []byte) bool {
	for _, level := range []string{"%/@", "%/C", "%/E"} {
		if bytes.HasPrefix(descriptor[88:120], []byte(level)) {
			return true
		}
	}
	return false
}

// text decodes text of the volume. The text is UTF-16 in a Joliet volume, and has a byte for each
// character in any other volume.
func (v *volume) text(data []byte) string {
	var units []uint16
	if !v.joliet {
		for _, b := range data {
			units = append(units, uint16(b))
		}
		return string(utf16.Decode(units))
	}
	for ; len(data) >= 2; data = data[2:] {
		units = append(units, binary.BigEndian.Uint16(data))
	}
	return string(utf16.Decode(units))
}
