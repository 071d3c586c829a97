package delta

import (
	"bytes"
	"debug/elf"
	"debug/pe"
)

// parseImage returns where an executable's parts are loaded. If the file is not
// an x86-64 executable with code, it returns the zero image.
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
	m := newImage(sections)
	if !m.valid(int64(len(file))) || m.codeHigh == 0 {
		return image{}
	}
	return m
}

func peSections(file []byte) (sections []section) {
	f, err := pe.NewFile(bytes.NewReader(file))
	if err != nil || f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		return nil
	}
	for _, s := range f.Sections {
		if s.Characteristics&pe.IMAGE_SCN_MEM_DISCARDABLE != 0 && s.VirtualAddress == 0 {
			continue
		}
		size := min(s.Size, s.VirtualSize)
		sections = append(sections, section{
			offset: int64(s.Offset), size: int64(size),
			address: int64(s.VirtualAddress), span: int64(s.VirtualSize),
			code: s.Characteristics&pe.IMAGE_SCN_MEM_EXECUTE != 0,
		})
	}
	return dropEmpty(sections)
}

func elfSections(file []byte) (sections []section) {
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil || f.Machine != elf.EM_X86_64 {
		return nil
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Off > maxSize || p.Filesz > maxSize || p.Vaddr > maxSize || p.Memsz > maxSize {
			continue
		}
		sections = append(sections, section{
			offset: int64(p.Off), size: int64(p.Filesz),
			address: int64(p.Vaddr), span: int64(p.Memsz),
			code: p.Flags&elf.PF_X != 0,
		})
	}
	return dropEmpty(sections)
}

// dropEmpty removes sections that have no bytes in the file, since they would
// overlap other sections.
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
