package source

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	remedyBuild = "build it with GOOS=windows GOARCH=amd64 (or the node's architecture)"
	remedyMain  = "build the command's main package, with go build -o kubelet.exe ./cmd/kubelet"
	remedyURL   = "the URL must lead to the file itself, not to a page about it"
	remedyWhole = "build or download it again"
)

// machineOf returns the processor (as GOARCH) that a Windows executable is for. If the file is
// not a Windows executable, it returns "", or an error if executable is true.
func machineOf(r io.ReaderAt, size int64, executable bool, name string) (string, error) {
	head := make([]byte, min(size, 512))
	if _, err := r.ReadAt(head, 0); err != nil && size > 0 && err != io.EOF {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if !bytes.HasPrefix(head, []byte("MZ")) {
		if !executable {
			return "", nil
		}
		looks, remedy := likelyKind(head, r)
		return "", &NotExecutableError{Name: name, Looks: looks, Remedy: remedy}
	}
	image, err := pe.NewFile(r)
	if err != nil {
		if !executable {
			return "", nil
		}
		return "", &NotExecutableError{Name: name, Looks: fmt.Sprintf("begins like one but is damaged or cut off (%v)",
			err), Remedy: remedyWhole}
	}
	if executable {
		if err := wholeProgram(image, size, name); err != nil {
			return "", err
		}
	}
	return goarch(image.Machine), nil
}

// wholeProgram returns an error for libraries, object files and truncated files.
func wholeProgram(image *pe.File, size int64, name string) error {
	switch {
	case image.Characteristics&pe.IMAGE_FILE_DLL != 0:
		return &NotExecutableError{Name: name, Looks: "is a DLL", Remedy: "name an .exe"}
	case image.Characteristics&pe.IMAGE_FILE_EXECUTABLE_IMAGE == 0 || image.OptionalHeader == nil:
		return &NotExecutableError{Name: name, Looks: "is an object file that has not been linked", Remedy: remedyMain}
	}
	if end := imageEnd(image); end > size {
		return &NotExecutableError{
			Name: name, Looks: fmt.Sprintf("is cut off: it has %d bytes of at least %d", size, end),
			Remedy: remedyWhole,
		}
	}
	return nil
}

// imageEnd returns the minimum size of the file in bytes, according to its headers.
func imageEnd(image *pe.File) int64 {
	var end int64
	for _, section := range image.Sections {
		if section.Size > 0 {
			end = max(end, int64(section.Offset)+int64(section.Size))
		}
	}
	// The address of the signature is an offset in the file.
	signature := directory(image, pe.IMAGE_DIRECTORY_ENTRY_SECURITY)
	return max(end, int64(signature.VirtualAddress)+int64(signature.Size))
}

func directory(image *pe.File, index int) pe.DataDirectory {
	switch header := image.OptionalHeader.(type) {
	case *pe.OptionalHeader32:
		if uint32(index) < header.NumberOfRvaAndSizes {
			return header.DataDirectory[index]
		}
	case *pe.OptionalHeader64:
		if uint32(index) < header.NumberOfRvaAndSizes {
			return header.DataDirectory[index]
		}
	}
	return pe.DataDirectory{}
}

func goarch(machine uint16) string {
	switch machine {
	case pe.IMAGE_FILE_MACHINE_AMD64:
		return "amd64"
	case pe.IMAGE_FILE_MACHINE_I386:
		return "386"
	case pe.IMAGE_FILE_MACHINE_ARM64:
		return "arm64"
	case pe.IMAGE_FILE_MACHINE_ARMNT:
		return "arm"
	}
	return fmt.Sprintf("machine type 0x%x", machine)
}

// likelyKind returns the likely kind of a file that should be an executable but is not, and the
// remedy.
func likelyKind(head []byte, r io.ReaderAt) (looks, remedy string) {
	lower := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"))
	switch {
	case len(head) == 0:
		return "is empty", remedyWhole
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return "is a program for Linux or another Unix (ELF" + elfMachine(r) + ")", remedyBuild
	case isMachO(head):
		return "is a program for macOS (Mach-O" + machoMachine(r) + ")", remedyBuild
	case bytes.HasPrefix(head, []byte("!<arch>")):
		return "is an archive of compiled packages, not a linked program", remedyMain
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return "is a zip archive", "unpack it and name the .exe in it"
	case bytes.HasPrefix(head, []byte("\x1f\x8b")), len(head) > 262 && bytes.HasPrefix(head[257:], []byte("ustar")):
		return "is a tar or gzip archive", "unpack it and name the .exe in it"
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")), bytes.HasPrefix(head, []byte("\xfd7zXZ")),
		bytes.HasPrefix(head, []byte("7z\xbc\xaf")):
		return "is a compressed archive", "unpack it and name the .exe in it"
	case bytes.HasPrefix(lower, []byte("<!doctype html")), bytes.HasPrefix(lower, []byte("<html")):
		return "is a web page (HTML)", remedyURL
	case bytes.HasPrefix(lower, []byte("<?xml")):
		return "is XML, perhaps a server's error message", remedyURL
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return "is a Git LFS pointer", "run git lfs pull"
	case bytes.HasPrefix(head, []byte("#!")):
		return "is a script", remedyBuild
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")), isText(head):
		return "looks like text", remedyBuild
	}
	return "does not begin as one (MZ)", remedyBuild
}

func isMachO(head []byte) bool {
	for _, magic := range []string{"\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe",
		"\xca\xfe\xba\xbe"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}

func elfMachine(r io.ReaderAt) string {
	file, err := elf.NewFile(r)
	if err != nil {
		return ""
	}
	return ", " + file.Machine.String()
}

func machoMachine(r io.ReaderAt) string {
	file, err := macho.NewFile(r)
	if err != nil {
		return ""
	}
	return ", " + file.Cpu.String()
}

// isText reports whether head is UTF-8 without control characters. The last character may
// be incomplete.
func isText(head []byte) bool {
	for len(head) > 0 {
		c, n := utf8.DecodeRune(head)
		if c == utf8.RuneError && n <= 1 && len(head) >= utf8.UTFMax {
			return false
		}
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\x1b' {
			return false
		}
		head = head[n:]
	}
	return true
}
