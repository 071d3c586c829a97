package media

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
	"github.com/swdt-dev/swdt/internal/vm/media/iso9660"
)

// Boot states how firmware can start an ISO.
type Boot struct {
	BIOS  bool       `json:"bios"`  // the boot catalog (El Torito) has an entry for BIOS
	UEFI  bool       `json:"uefi"`  // the boot catalog (El Torito) has an entry for UEFI
	Files []BootFile `json:"files"` // the files that Windows Setup starts from
}

// BootFile is a file that Windows Setup starts from.
type BootFile struct {
	Path    string `json:"path"`
	Present bool   `json:"present"`
}

// readBoot fills m.Boot from the boot catalog and from the files that Windows Setup starts from. It
// adds a finding for each of these files that is missing, and for a missing entry for UEFI.
func (m *Media) readBoot(r io.ReaderAt, d *Disc) error {
	loader := "efi/boot/bootx64.efi"
	if m.Architecture == "arm64" {
		loader = "efi/boot/bootaa64.efi"
	}
	for _, path := range []string{"sources/boot.wim", loader} {
		_, _, ok, err := readerAt(d, path)
		if err != nil {
			return err
		}
		m.Boot.Files = append(m.Boot.Files, BootFile{Path: path, Present: ok})
		if !ok {
			m.find(finding.Error, asPublished, "the ISO has no %s, which starts Windows Setup", path)
		}
	}
	catalog, err := bootSector(discfs.NewImage(r, m.SizeBytes))
	if err != nil {
		return err
	}
	m.Boot.BIOS, m.Boot.UEFI = bootEntries(catalog)
	if !m.Boot.UEFI {
		m.find(finding.Error, asPublished, "the ISO has no boot entry for UEFI; VMs of swdt start only by UEFI")
	}
	return nil
}

// bootEntries reports whether an El Torito boot catalog has a bootable entry for BIOS, and whether
// it has one for UEFI. Both results are false if the catalog is nil or invalid.
func bootEntries(catalog []byte) (bios, uefi bool) {
	const entrySize, bootable = 32, 0x88
	if catalog == nil || catalog[0] != 1 || catalog[30] != 0x55 || catalog[31] != 0xaa {
		return false, false
	}
	platform := catalog[1]
	for at := entrySize; at < len(catalog); at += entrySize {
		switch catalog[at] {
		case 0x90, 0x91: // the header of a section
			platform = catalog[at+1]
		case bootable:
			bios = bios || platform == 0
			uefi = uefi || platform == 0xef
		}
	}
	return bios, uefi
}

// bootSector returns the sector of the boot catalog, or nil if the image has none.
func bootSector(image *discfs.Image) ([]byte, error) {
	descriptors, err := iso9660.Descriptors(image)
	if format := (*discfs.FormatError)(nil); errors.As(err, &format) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, descriptor := range descriptors {
		if descriptor[0] == 0 && strings.HasPrefix(string(descriptor[7:39]), "EL TORITO SPECIFICATION") {
			catalog, err := image.Sector(int64(binary.LittleEndian.Uint32(descriptor[71:])))
			if discfs.EndsEarly(err) {
				return nil, nil
			}
			return catalog, err
		}
	}
	return nil, nil
}
