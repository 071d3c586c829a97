package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/tools/release/payload"
)

// TestContents makes one release and looks into each of its files.
func TestContents(t *testing.T) {
	folder := checkout(t)
	dist, _ := released(t, folder)
	for name, test := range map[string]func(*testing.T, string){
		"deb": testDeb, "rpm": testRPM, "image": testImage, "provenance": testProvenance,
	} {
		t.Run(name, func(t *testing.T) { test(t, dist) })
	}
}

// read returns the content of a file of the release.
func read(t *testing.T, dist, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dist, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// unpacked is a file or a link of a package.
type unpacked struct {
	Mode   fs.FileMode
	Target string // of a link
	Text   string // "": a program or compressed, so it is not compared
}

// installed returns all files and links that every package must have.
func installed(notices []byte, licences, licence, zsh string) map[string]unpacked {
	text := func(content string) unpacked { return unpacked{Mode: payload.ModeText, Text: content} }
	return map[string]unpacked{
		"/usr/bin/swdt":         {Mode: payload.ModeProgram},
		"/usr/bin/kubectl-swdt": {Mode: fs.ModeSymlink | 0o777, Target: "swdt"},
		"/usr/bin/kubectl_complete-swdt": {Mode: payload.ModeProgram,
			Text: "#!/bin/sh\nexec kubectl-swdt __complete \"$@\"\n"},
		licences + "/" + licence:                         text("licence"),
		licences + "/THIRD_PARTY_NOTICES":                text(string(notices)),
		"/usr/share/bash-completion/completions/swdt":    text("bash"),
		zsh + "/_swdt":                                   text("zsh"),
		"/usr/share/fish/vendor_completions.d/swdt.fish": text("fish"),
		"/usr/share/man/man1/swdt.1.gz":                  text(""),
		"/usr/share/man/man1/swdt-ps.1.gz":               text(""),
	}
}

func comparePackage(t *testing.T, got, want map[string]unpacked) {
	t.Helper()
	for path, file := range got {
		if !strings.HasPrefix(path, "/usr/") {
			t.Errorf("%s is outside /usr", path)
		}
		if want[path].Text == "" {
			file.Text = ""
		}
		if file.Mode&fs.ModeSymlink != 0 {
			file.Mode |= fs.ModePerm // a link's own permissions mean nothing
		}
		got[path] = file
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func testDeb(t *testing.T, dist string) {
	for _, arch := range []string{"amd64", "arm64"} {
		members := debMembers(t, read(t, dist, "swdt_1.4.0-1_"+arch+".deb"))
		want := []string{"control.tar.gz", "data.tar.gz", "debian-binary"}
		if got := slices.Sorted(maps.Keys(members)); !slices.Equal(got, want) {
			t.Fatalf("got the members %v, want %v", got, want)
		}
		comparePackage(t, untar(t, members["data.tar.gz"]),
			installed(read(t, filepath.Dir(dist), "THIRD_PARTY_NOTICES"), "/usr/share/doc/swdt", "copyright", "/usr/share/zsh/vendor-completions"))
		control := untar(t, members["control.tar.gz"])
		// A script could make or leave files that dpkg does not know of, so there is none.
		if got, want := slices.Sorted(maps.Keys(control)), []string{"/control", "/md5sums"}; !slices.Equal(got, want) {
			t.Errorf("got the control files %v, want %v", got, want)
		}
		for _, line := range []string{"Package: swdt\n", "Version: 1.4.0-1\n", "Architecture: " + arch + "\n"} {
			if !strings.Contains(control["/control"].Text, line) {
				t.Errorf("no %q in\n%s", line, control["/control"].Text)
			}
		}
	}
}

// debMembers returns the members of an ar archive by their names.
func debMembers(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	rest, found := bytes.CutPrefix(content, []byte("!<arch>\n"))
	if !found {
		t.Fatal("not an ar archive")
	}
	all := map[string][]byte{}
	for len(rest) > 0 {
		header := rest[:60]
		size, err := strconv.Atoi(strings.TrimSpace(string(header[48:58])))
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimRight(strings.TrimSpace(string(header[:16])), "/")
		all[name] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	return all
}

// untar returns the files and links of a compressed tar archive, and fails if one is not root's.
func untar(t *testing.T, content []byte) map[string]unpacked {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]unpacked{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", header.Name, header.Uid, header.Gid)
		}
		mode := header.FileInfo().Mode()
		if mode.IsDir() {
			continue
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		all["/"+strings.TrimPrefix(header.Name, "./")] = unpacked{mode, header.Linkname, string(text)}
	}
}

func testRPM(t *testing.T, dist string) {
	for _, arch := range []string{"x86_64", "aarch64"} {
		folders := map[string]bool{}
		comparePackage(t, uncpio(t, rpmPayload(t, read(t, dist, "swdt-1.4.0-1."+arch+".rpm")), folders),
			installed(read(t, filepath.Dir(dist), "THIRD_PARTY_NOTICES"), "/usr/share/licenses/swdt", "LICENSE", "/usr/share/zsh/site-functions"))
		// rpm removes only the folders that a package lists.
		if diff := cmp.Diff(map[string]bool{"/usr/share/licenses/swdt": true}, folders); diff != "" {
			t.Error(diff)
		}
	}
}

// rpmPayload returns the payload: what follows the lead of 96 bytes, the signature, which is filled up to
// a multiple of eight bytes, and the header.
func rpmPayload(t *testing.T, content []byte) []byte {
	t.Helper()
	rest := content[96:]
	for _, alignment := range []int{8, 1} {
		if !bytes.HasPrefix(rest, []byte{0x8e, 0xad, 0xe8, 1}) {
			t.Fatal("not a package of rpm")
		}
		size := 16 + 16*int(binary.BigEndian.Uint32(rest[8:])) + int(binary.BigEndian.Uint32(rest[12:]))
		rest = rest[(size+alignment-1)/alignment*alignment:]
	}
	return rest
}

// uncpio returns the files and links of a compressed cpio archive, and adds its folders.
func uncpio(t *testing.T, content []byte, folders map[string]bool) map[string]unpacked {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]unpacked{}
	for reader := cpio.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		file := unpacked{Mode: header.FileInfo().Mode(), Text: string(text)}
		if file.Mode.IsDir() {
			folders[header.Name] = true
			continue
		}
		if file.Mode&fs.ModeSymlink != 0 {
			file.Target, file.Text = fmt.Sprint(header.Linkname, file.Text), ""
		}
		all[header.Name] = file
	}
}
