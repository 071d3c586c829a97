package artifact_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
)

// serveFiles serves files by path.
func serveFiles(files map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	})
}

func TestEvilArchives(t *testing.T) {
	good := file("bin/containerd.exe", amd64("containerd"))
	link := func(kind byte) archived {
		return archived{Header: tar.Header{Name: "bin/ctr.exe", Typeflag: kind, Linkname: "/etc/passwd"}}
	}
	whole := release(t, "1.7.12")
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-6] ^= 1 // gzip's checksum
	for title, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"leads outside":    {targz(t, file("../../bin/containerd.exe", amd64("evil"))), "leads outside of it"},
		"with backslashes": {targz(t, file(`..\..\containerd.exe`, amd64("evil"))), "leads outside of it"},
		"symbolic link":    {targz(t, good, link(tar.TypeSymlink)), "no regular file"},
		"hard link":        {targz(t, good, link(tar.TypeLink)), "no regular file"},
		"device": {targz(t, good, archived{Header: tar.Header{Name: "ctr.exe", Typeflag: tar.TypeChar}}),
			"no regular file"},
		"twice":          {targz(t, good, file("other/containerd.exe", amd64("evil"))), "has containerd.exe twice"},
		"too large":      {targz(t, file("containerd.exe", amd64(strings.Repeat("x", 5000)))), "more than the 4000"},
		"a bomb":         {targz(t, file("padding", make([]byte, 30_000)), good), "more than is ever needed"},
		"cut":            {whole[:len(whole)/2], "not a whole .tar.gz"},
		"cut at its end": {whole[:len(whole)-4], "not a whole .tar.gz"},
		"damaged":        {damaged, "not a whole .tar.gz"},
		"no archive":     {[]byte("\x1f\x8bnonsense"), "not a whole .tar.gz"},
		"for Linux": {targz(t, file("bin/containerd", []byte("\x7fELF"))),
			"has no containerd.exe: name the archive of a release for Windows"},
		"no program":      {targz(t, file("bin/containerd.exe", []byte("#!/bin/sh"))), "containerd.exe in "},
		"another machine": {targz(t, file("bin/containerd.exe", arm64("containerd"))), "is built for arm64"},
	} {
		t.Run(title, func(t *testing.T) {
			folder, cache := t.TempDir(), t.TempDir()
			wish := containerd()
			wish.Source = filepath.Join(write(t, folder, map[string][]byte{"deep/er/some.tar.gz": c.archive}), "deep",
				"er", "some.tar.gz")
			store := artifact.NewStore(source.Options{Cache: cache})
			artifact.Limit(store, 4000, 20_000)
			refuse(t, store, wish, "some.tar.gz", c.want)
			expectOnly(t, folder, "some.tar.gz")
			expectNoneBut(t, cache, ".lock", ".json", ".used")
		})
	}
}

// expectOnly checks that all files below a folder have this name.
func expectOnly(t *testing.T, folder, name string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != name {
			t.Errorf("%s appeared", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// expectNoneBut checks that a cache has no temporary files, and no file under a name that
// an archive chose: blobs are named by their hashes.
func expectNoneBut(t *testing.T, cache string, endings ...string) {
	t.Helper()
	err := filepath.WalkDir(cache, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := entry.Name()
		for _, ending := range endings {
			name = strings.TrimSuffix(name, ending)
		}
		if len(strings.TrimSuffix(name, "-containerd")) != 64 {
			t.Errorf("%s is left", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A file that is missing or damaged in the cache is unpacked again.
func TestDamagedCache(t *testing.T) {
	net := publish(t)
	run := runs(t, net)
	set, _ := expect(t, run(), containerd(), containerdFiles())
	for _, damage := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.WriteFile(path, []byte("MZ"), 0o600) },
	} {
		if err := damage(set.Files[1].Path); err != nil {
			t.Fatal(err)
		}
		expect(t, run(), containerd(), containerdFiles())
	}
	if asked := net.requests(); len(asked) != 2 {
		t.Errorf("asked %v", asked)
	}
}

// The archive is read from the source file itself, which a build may replace.
func TestANewArchiveAtTheSamePath(t *testing.T) {
	folder := t.TempDir()
	run := runs(t, connect(t))
	wish := containerd()
	wish.Source = filepath.Join(folder, "c.tar.gz")
	for _, text := range []string{"one", "two"} {
		write(t, folder, map[string][]byte{"c.tar.gz": targz(t, file("containerd.exe", amd64(text)))})
		expect(t, run(), wish, map[string][]byte{"containerd.exe": amd64(text)})
	}
}

func TestArchiveErrorsAreTyped(t *testing.T) {
	wish := containerd()
	wish.Source = filepath.Join(write(t, t.TempDir(), map[string][]byte{"c.tgz": []byte("\x1f\x8b")}), "c.tgz")
	var archive *artifact.ArchiveError
	if err := refuse(t, runs(t, connect(t))(), wish, "c.tgz"); !errors.As(err, &archive) ||
		archive.Archive != wish.Source {
		t.Errorf("%v is another error", err)
	}
}
