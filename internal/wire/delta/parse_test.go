package delta

import (
	"bytes"
	"debug/elf"
	"debug/pe"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExecutablesAreReadAsDebugPEAndDebugELFReadThem compares the sections of
// real programs: Go's tools for Linux and Windows, and the ones of the lab
// (`make lab`) if they are built.
func TestExecutablesAreReadAsDebugPEAndDebugELFReadThem(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{self, windowsProgram(t)}
	if cache, err := os.UserCacheDir(); err == nil {
		for _, pattern := range []string{"*.exe", "linux/*", "node/*.exe", "pods/*.exe"} {
			found, err := filepath.Glob(filepath.Join(cache, "swdt", "lab", pattern))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			if stat, err := os.Stat(name); err == nil && !stat.Mode().IsRegular() {
				return
			}
			file, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sameSections(t, file)
			isProgram := bytes.HasPrefix(file, []byte("MZ")) || bytes.HasPrefix(file, []byte("\x7fELF"))
			if isProgram && parseImage(file).codeHigh == 0 {
				t.Error("the program has no code")
			}
		})
	}
}

// windowsProgram builds a program for Windows and returns its path.
func windowsProgram(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	source := filepath.Join(folder, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(1) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, "main.exe")
	build := exec.Command("go", "build", "-o", name, source)
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build a program for Windows: %v\n%s", err, out)
	}
	return name
}

// FuzzParseImage parses invalid and nearly valid executables: no panic, sections
// within the file, and the ones that debug/pe and debug/elf find.
func FuzzParseImage(f *testing.F) {
	self, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(program[:4096])
	f.Add(peProgram(3))
	f.Add(peProgram(maxSections + 1))
	f.Add(elfProgram(3))
	f.Add(elfProgram(maxSections + 1))
	f.Fuzz(func(t *testing.T, file []byte) {
		sameSections(t, file)
		if m := parseImage(file); !m.valid(int64(len(file))) {
			t.Errorf("the image %+v does not fit a file of %d bytes", m, len(file))
		}
	})
}

// sameSections expects of a file that debug/pe or debug/elf can read the sections
// that they find. These two refuse some files because of tables that
// nothing here needs, such as symbols and relocations.
func sameSections(t *testing.T, file []byte) {
	t.Helper()
	wantPE, ok := sectionsOfDebugPE(file)
	if diff := cmp.Diff(wantPE, peSections(file), cmp.AllowUnexported(section{})); ok && diff != "" {
		t.Errorf("the sections of debug/pe and ours (-want +got):\n%s", diff)
	}
	wantELF, ok := sectionsOfDebugELF(file)
	if diff := cmp.Diff(wantELF, elfSections(file), cmp.AllowUnexported(section{})); ok && diff != "" {
		t.Errorf("the segments of debug/elf and ours (-want +got):\n%s", diff)
	}
}

// sectionsOfDebugPE returns the sections of a PE file, and whether debug/pe reads it.
func sectionsOfDebugPE(file []byte) (sections []section, ok bool) {
	f, err := pe.NewFile(bytes.NewReader(file))
	if err != nil {
		return nil, false
	}
	if f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 || !bytes.HasPrefix(file, []byte("MZ")) {
		return nil, true // of another processor, or an object file
	}
	for _, s := range f.Sections {
		if s.Characteristics&pe.IMAGE_SCN_MEM_DISCARDABLE != 0 && s.VirtualAddress == 0 {
			continue
		}
		sections = append(sections, section{
			offset: int64(s.Offset), size: int64(min(s.Size, s.VirtualSize)),
			address: int64(s.VirtualAddress), span: int64(s.VirtualSize),
			code: s.Characteristics&pe.IMAGE_SCN_MEM_EXECUTE != 0,
		})
	}
	return dropEmpty(sections), true
}

// sectionsOfDebugELF returns the loaded segments of an ELF file, and whether
// debug/elf reads it.
func sectionsOfDebugELF(file []byte) (sections []section, ok bool) {
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return nil, false
	}
	if x8664 := f.Machine == elf.EM_X86_64 && f.Class == elf.ELFCLASS64 && f.Data == elf.ELFDATA2LSB; !x8664 {
		return nil, true
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || max(p.Off, p.Filesz, p.Vaddr, p.Memsz) > maxSize {
			continue
		}
		sections = append(sections, section{
			offset: int64(p.Off), size: int64(p.Filesz),
			address: int64(p.Vaddr), span: int64(p.Memsz),
			code: p.Flags&elf.PF_X != 0,
		})
	}
	return dropEmpty(sections), true
}

// TestHeadersThatLieMakeNoImage reads files whose headers point beyond them or
// contradict each other.
func TestHeadersThatLieMakeNoImage(t *testing.T) {
	le := binary.LittleEndian
	with := func(file []byte, change func([]byte)) []byte {
		change(file)
		return file
	}
	tests := map[string][]byte{
		"an empty file":                   nil,
		"two bytes":                       []byte("MZ"),
		"a PE header at the end":          with(peProgram(1), func(f []byte) { le.PutUint32(f[0x3c:], uint32(len(f)-1)) }),
		"a PE header at 4 GB":             with(peProgram(1), func(f []byte) { le.PutUint32(f[0x3c:], 1<<32-1) }),
		"more PE sections than file":      with(peProgram(1), func(f []byte) { le.PutUint16(f[0x46:], 0xffff) }),
		"more PE sections than allowed":   peProgram(maxSections + 1),
		"an optional header as the file":  with(peProgram(1), func(f []byte) { le.PutUint16(f[0x54:], 0xffff) }),
		"a PE section at 4 GB":            with(peProgram(1), func(f []byte) { le.PutUint32(f[0x58+20:], 1<<32-1) }),
		"a PE section in the next one":    with(peProgram(2), func(f []byte) { le.PutUint32(f[0x58+16:], 4096) }),
		"a PE of another processor":       with(peProgram(1), func(f []byte) { le.PutUint16(f[0x44:], 0xaa64) }),
		"ELF segments at 2^64":            with(elfProgram(1), func(f []byte) { le.PutUint64(f[32:], 1<<64-1) }),
		"ELF segment headers of no bytes": with(elfProgram(1), func(f []byte) { le.PutUint16(f[54:], 0) }),
		"more ELF segments than file":     with(elfProgram(1), func(f []byte) { le.PutUint16(f[56:], 0xffff) }),
		"more ELF segments than allowed":  elfProgram(maxSections + 1),
		"an ELF segment at 2^63":          with(elfProgram(1), func(f []byte) { le.PutUint64(f[64+8:], 1<<63) }),
		"an ELF segment of 2^40 - 1":      with(elfProgram(1), func(f []byte) { le.PutUint64(f[64+32:], 1<<40-1) }),
		"ELF addresses of 2^40":           with(elfProgram(1), func(f []byte) { le.PutUint64(f[64+40:], 1<<40) }),
		"big-endian ELF":                  with(elfProgram(1), func(f []byte) { f[5] = 2 }),
	}
	for name, file := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(image{}, parseImage(file), cmp.AllowUnexported(image{}, section{})); diff != "" {
				t.Errorf("the image (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSmallProgramsHaveAnImage(t *testing.T) {
	for name, file := range map[string][]byte{"PE": peProgram(2), "ELF": elfProgram(2)} {
		t.Run(name, func(t *testing.T) {
			want := image{span: 0x2000, codeHigh: 0x2000}
			for i := range int64(2) {
				want.sections = append(want.sections, section{
					offset: int64(len(file)) - 32 + 16*i, size: 16, address: 0x1000 * i, span: 0x1000, code: true,
				})
			}
			if diff := cmp.Diff(want, parseImage(file), cmp.AllowUnexported(image{}, section{})); diff != "" {
				t.Errorf("the image (-want +got):\n%s", diff)
			}
		})
	}
}

// peProgram returns a PE file with sections of code of 16 bytes each, at its end.
func peProgram(sections int) []byte {
	le := binary.LittleEndian
	start := 0x58 + 40*sections
	file := make([]byte, start+16*sections)
	copy(file, "MZ")
	le.PutUint32(file[0x3c:], 0x40)
	copy(file[0x40:], "PE\x00\x00")
	le.PutUint16(file[0x44:], pe.IMAGE_FILE_MACHINE_AMD64)
	le.PutUint16(file[0x46:], uint16(sections))
	for i := range sections {
		h := file[0x58+40*i:]
		le.PutUint32(h[8:], 0x1000)
		le.PutUint32(h[12:], uint32(0x1000*(i+1)))
		le.PutUint32(h[16:], 16)
		le.PutUint32(h[20:], uint32(start+16*i))
		le.PutUint32(h[36:], pe.IMAGE_SCN_MEM_EXECUTE)
	}
	return file
}

// elfProgram returns an ELF file with segments of code of 16 bytes each, at its end.
func elfProgram(segments int) []byte {
	le := binary.LittleEndian
	start := 64 + 56*segments
	file := make([]byte, start+16*segments)
	copy(file, "\x7fELF\x02\x01\x01")
	le.PutUint16(file[18:], uint16(elf.EM_X86_64))
	le.PutUint32(file[20:], uint32(elf.EV_CURRENT))
	le.PutUint64(file[32:], 64)
	le.PutUint16(file[54:], 56)
	le.PutUint16(file[56:], uint16(segments))
	for i := range segments {
		h := file[64+56*i:]
		le.PutUint32(h, uint32(elf.PT_LOAD))
		le.PutUint32(h[4:], uint32(elf.PF_X))
		le.PutUint64(h[8:], uint64(start+16*i))
		le.PutUint64(h[16:], uint64(0x1000*(i+1)))
		le.PutUint64(h[32:], 16)
		le.PutUint64(h[40:], 0x1000)
	}
	return file
}
