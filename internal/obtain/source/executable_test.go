package source_test

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	executable = pe.IMAGE_FILE_EXECUTABLE_IMAGE | pe.IMAGE_FILE_LARGE_ADDRESS_AWARE
	headerSize = 0x200
)

// image builds a small PE file: headers, and one section with content.
func image(machine, characteristics uint16, content []byte) []byte {
	var b bytes.Buffer
	dos := make([]byte, 0x40)
	copy(dos, "MZ")
	binary.LittleEndian.PutUint32(dos[0x3c:], 0x40)
	b.Write(dos)
	b.WriteString("PE\x00\x00")
	optional := pe.OptionalHeader64{Magic: 0x20b, NumberOfRvaAndSizes: 16}
	write(&b, pe.FileHeader{
		Machine: machine, NumberOfSections: 1, Characteristics: characteristics,
		SizeOfOptionalHeader: uint16(binary.Size(optional)),
	})
	write(&b, optional)
	write(&b, pe.SectionHeader32{
		Name: [8]uint8{'.', 't', 'e', 'x', 't'}, VirtualSize: uint32(len(content)), VirtualAddress: 0x1000,
		SizeOfRawData: uint32(len(content)), PointerToRawData: headerSize,
	})
	b.Write(make([]byte, headerSize-b.Len()))
	b.Write(content)
	return b.Bytes()
}

func write(w io.Writer, v any) {
	if err := binary.Write(w, binary.LittleEndian, v); err != nil {
		panic(err) // a bug in the test
	}
}

func kubelet(text string) []byte { return image(pe.IMAGE_FILE_MACHINE_AMD64, executable, []byte(text)) }

func place(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestZoo(t *testing.T) {
	whole := kubelet(strings.Repeat("code", 100))
	signed := bytes.Clone(whole)
	// The security directory is entry 4; its address is an offset in the file.
	security := 0x40 + 4 + binary.Size(pe.FileHeader{}) + binary.Size(pe.OptionalHeader64{}) - (16-4)*8
	binary.LittleEndian.PutUint32(signed[security:], uint32(len(whole)))
	binary.LittleEndian.PutUint32(signed[security+4:], 100)

	for name, c := range map[string]struct {
		content []byte
		looks   string // in the error; empty: accepted
	}{
		"whole":         {whole, ""},
		"signed":        {append(bytes.Clone(signed), make([]byte, 100)...), ""},
		"signature cut": {signed, "is cut off"},
		"section cut":   {whole[:len(whole)-1], "is cut off: it has"},
		"headers cut":   {whole[:0x60], "damaged or cut off"},
		"DOS":           {append([]byte("MZ"), make([]byte, 200)...), "damaged or cut off"},
		"DLL":           {image(pe.IMAGE_FILE_MACHINE_AMD64, executable|pe.IMAGE_FILE_DLL, []byte("x")), "is a DLL"},
		"object":        {image(pe.IMAGE_FILE_MACHINE_AMD64, 0, []byte("x")), "object file"},
		"empty":         {nil, "is empty"},
		"text":          {[]byte("hello, this is not a program\n"), "looks like text: build it with GOOS=windows"},
		"UTF-16 text":   {[]byte("\xff\xfeh\x00i\x00"), "looks like text"},
		"script":        {[]byte("#!/bin/sh\nexit 0\n"), "is a script"},
		"ELF":           {elfHeader(), "ELF, EM_X86_64"},
		"Mach-O":        {[]byte("\xcf\xfa\xed\xfe\x0c\x00\x00\x01"), "macOS"},
		"zip":           {[]byte("PK\x03\x04rest"), "zip archive: unpack it"},
		"gzip":          {[]byte("\x1f\x8b\x08rest"), "tar or gzip"},
		"web page": {[]byte("\n <!DOCTYPE html><html>404</html>"),
			"web page (HTML): the URL must lead to the file itself"},
		"web page, BOM":    {[]byte("\xef\xbb\xbf<HTML>"), "web page"},
		"XML":              {[]byte("<?xml version='1.0'?><Error><Code>AccessDenied</Code>"), "is XML"},
		"LFS pointer":      {[]byte("version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"},
		"archive of Go":    {[]byte("!<arch>\n__.PKGDEF"), "archive of compiled packages"},
		"something binary": {[]byte("\x00\x01\x02\x03"), "does not begin as one"},
	} {
		t.Run(name, func(t *testing.T) {
			path := place(t, "kubelet.exe", c.content)
			binary, err := source.Obtain(t.Context(), source.Request{URL: path, Executable: true}, ui.Discard{})
			if c.looks == "" {
				switch {
				case err != nil:
					t.Fatal(err)
				case binary.Machine != "amd64":
					t.Fatalf("binary.Machine is %q, want %q", binary.Machine, "amd64")
				case binary.Size != int64(len(c.content)):
					t.Fatalf("binary.Size is %v, want %v", binary.Size, int64(len(c.content)))
				}
				return
			}
			var bad *source.NotExecutableError
			switch {
			case !errors.As(err, &bad):
				t.Fatalf("the error is %v, a %T, want a %T", err, err, bad)
			case !strings.Contains(err.Error(), c.looks):
				t.Fatalf("err.Error() lacks %q:\n%s", c.looks, err.Error())
			case !strings.Contains(err.Error(), path):
				t.Fatalf("err.Error() lacks %q:\n%s", path, err.Error())
			}
			// If it need not be an executable, the file is accepted.
			if _, err := source.Obtain(t.Context(), source.Request{URL: path}, ui.Discard{}); err != nil {
				t.Fatalf("not as a program: %v", err)
			}
		})
	}
}

func elfHeader() []byte {
	h := make([]byte, 64)
	copy(h, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(h[16:], 2)  // executable
	binary.LittleEndian.PutUint16(h[18:], 62) // x86-64
	binary.LittleEndian.PutUint32(h[20:], 1)
	binary.LittleEndian.PutUint16(h[52:], 64)
	binary.LittleEndian.PutUint16(h[54:], 56)
	binary.LittleEndian.PutUint16(h[58:], 64)
	return h
}

func TestMachines(t *testing.T) {
	for machine, want := range map[uint16]string{
		pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_I386: "386",
		pe.IMAGE_FILE_MACHINE_ARM64: "arm64", pe.IMAGE_FILE_MACHINE_ARMNT: "arm", 0x200: "machine type 0x200",
	} {
		path := place(t, "kubelet.exe", image(machine, executable, []byte(fmt.Sprint(machine))))
		binary, err := source.Obtain(t.Context(), source.Request{URL: path, Executable: true}, ui.Discard{})
		if machine == 0x200 && err != nil {
			continue // debug/pe does not know every machine
		}
		switch {
		case err != nil:
			t.Error(err)
		case binary.Machine != want:
			t.Errorf("binary.Machine is %q, want %q", binary.Machine, want)
		}
	}
}

func TestAnotherProcessorIsRefusedByName(t *testing.T) {
	b := source.Binary{Path: "/out/kubelet.exe", Machine: "386"}
	var wrong *source.MachineError
	switch err := b.For("amd64"); {
	case !errors.As(err, &wrong):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, wrong)
	case !strings.Contains(err.Error(), "built for 386, but the node is amd64"):
		t.Fatalf("err.Error() lacks %q:\n%s", "built for 386, but the node is amd64", err.Error())
	}
	for _, fine := range []error{b.For("386"), b.For(""), source.Binary{}.For("amd64")} {
		if fine != nil {
			t.Errorf("fine is %v, want nil", fine)
		}
	}
}

// For any bytes, examining a file does not panic, and a file without MZ is not a
// program.
func FuzzExecutable(f *testing.F) {
	f.Add(kubelet("code"))
	f.Add([]byte("MZ"))
	f.Add(elfHeader())
	f.Add([]byte("\xcf\xfa\xed\xfe"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := place(t, "x.exe", content)
		binary, err := source.Obtain(t.Context(), source.Request{URL: path, Executable: true}, ui.Discard{})
		if err == nil && (!bytes.HasPrefix(content, []byte("MZ")) || binary.Machine == "") {
			t.Fatalf("accepted %q", content)
		}
	})
}
