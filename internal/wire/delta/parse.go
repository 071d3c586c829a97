package delta

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// parseImage returns the layout of an executable in memory. If the file is not an x86-64 executable
// with code, parseImage returns the zero image.
//
// It reads the few fields that it needs instead of importing debug/pe and debug/elf. The tables of
// these packages are variables, which the linker keeps, so these packages would add 17 KB to the
// agent although only Diff parses executables.
func parseImage(file []byte) image {
	sections := peSections(file)
	if sections == nil {
		sections = elfSections(file)
	}
	if len(sections) == 0 {
		return image{}
	}
	low := sections[0].address
	for _, s := range sections {
		low = min(low, s.address)
	}
	// Block maps begin at a multiple of granule.
	low &^= granule - 1
	for i := range sections {
		sections[i].address -= low
	}
	slices.SortFunc(sections, func(a, b section) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.size, b.size))
	})
	m := newImage(sections)
	if !m.valid(int64(len(file))) || m.codeHigh == 0 {
		return image{}
	}
	return m
}

// Sizes of headers, offsets of fields and values of fields in a PE file. Each offset counts from
// the beginning of the header that contains the field.
const (
	dosHeaderSize = 96
	dosPEOffset   = 0x3c

	peHeaderSize         = 24 // with the signature
	peMachine            = 4
	peSectionCount       = 6
	peOptionalHeaderSize = 20
	peMachineAMD64       = 0x8664

	peSectionSize        = 40
	peSectionSpan        = 8
	peSectionAddress     = 12
	peSectionBytes       = 16
	peSectionOffset      = 20
	peSectionFlags       = 36
	peSectionExecutable  = 0x20000000
	peSectionDiscardable = 0x02000000
)

// peSections returns the sections of an x86-64 PE file. It returns nil if the file is not an x86-64
// PE file or ends within its headers.
func peSections(file []byte) (sections []section) {
	le := binary.LittleEndian
	dos := part(file, 0, dosHeaderSize)
	if dos == nil || !bytes.HasPrefix(dos, []byte("MZ")) {
		return nil
	}
	at := uint64(le.Uint32(dos[dosPEOffset:]))
	header := part(file, at, peHeaderSize)
	if !bytes.HasPrefix(header, []byte("PE\x00\x00")) || le.Uint16(header[peMachine:]) != peMachineAMD64 {
		return nil
	}
	at += peHeaderSize + uint64(le.Uint16(header[peOptionalHeaderSize:]))
	headers := part(file, at, uint64(le.Uint16(header[peSectionCount:]))*peSectionSize)
	for h := range slices.Chunk(headers, peSectionSize) {
		flags, address := le.Uint32(h[peSectionFlags:]), le.Uint32(h[peSectionAddress:])
		if flags&peSectionDiscardable != 0 && address == 0 {
			continue
		}
		span := int64(le.Uint32(h[peSectionSpan:]))
		sections = append(sections, section{
			offset:  int64(le.Uint32(h[peSectionOffset:])),
			size:    min(int64(le.Uint32(h[peSectionBytes:])), span),
			address: int64(address),
			span:    span,
			code:    flags&peSectionExecutable != 0,
		})
	}
	return dropEmpty(sections)
}

// Sizes of headers, offsets of fields and values of fields in a 64-bit ELF file. Each offset counts
// from the beginning of the header that contains the field.
const (
	elfHeaderSize   = 64
	elfMachine      = 18
	elfSegments     = 32
	elfSegmentSize  = 54
	elfSegmentCount = 56
	elfMachineAMD64 = 62

	segmentHeaderSize = 56 // minimum size; the field elfSegmentSize has the real size
	segmentType       = 0
	segmentFlags      = 4
	segmentOffset     = 8
	segmentAddress    = 16
	segmentBytes      = 32
	segmentSpan       = 40
	segmentLoaded     = 1
	segmentExecutable = 1
)

// elfSections returns the loaded segments of an x86-64 ELF file. It returns nil if the file is not
// an x86-64 ELF file or ends within its headers.
func elfSections(file []byte) (sections []section) {
	le := binary.LittleEndian
	header := part(file, 0, elfHeaderSize)
	const ident = "\x7fELF\x02\x01\x01" // 64 bits, little-endian, version 1
	if !bytes.HasPrefix(header, []byte(ident)) || le.Uint16(header[elfMachine:]) != elfMachineAMD64 {
		return nil
	}
	each := uint64(le.Uint16(header[elfSegmentSize:]))
	if each < segmentHeaderSize {
		return nil
	}
	headers := part(file, le.Uint64(header[elfSegments:]), uint64(le.Uint16(header[elfSegmentCount:]))*each)
	for h := range slices.Chunk(headers, int(each)) {
		offset, size := le.Uint64(h[segmentOffset:]), le.Uint64(h[segmentBytes:])
		address, span := le.Uint64(h[segmentAddress:]), le.Uint64(h[segmentSpan:])
		if le.Uint32(h[segmentType:]) != segmentLoaded || max(offset, size, address, span) > maxSize {
			continue
		}
		sections = append(sections, section{
			offset:  int64(offset),
			size:    int64(size),
			address: int64(address),
			span:    int64(span),
			code:    le.Uint32(h[segmentFlags:])&segmentExecutable != 0,
		})
	}
	return dropEmpty(sections)
}

// part returns `size` bytes of a file, beginning at the offset `at`. If the file ends before these
// bytes do, part returns nil.
func part(file []byte, at, size uint64) []byte {
	if at > uint64(len(file)) || size > uint64(len(file))-at {
		return nil
	}
	return file[at : at+size]
}

// dropEmpty removes sections that have neither bytes in the file nor addresses. It moves a section
// that has addresses but no bytes in the file to offset 0, since the section could overlap other
// sections at its own offset.
func dropEmpty(sections []section) (rest []section) {
	for _, s := range sections {
		if s.size == 0 {
			s.offset = 0
			if s.span == 0 {
				continue
			}
		}
		rest = append(rest, s)
	}
	return rest
}
