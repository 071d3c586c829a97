package udf_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
	"github.com/swdt-dev/swdt/internal/vm/media/udf"
)

func openFile(t testing.TB, name string) *udf.FS {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	found, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := udf.Open(file, found.Size())
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// contents returns the content of each file, and "/" for a folder, by path.
func contents(t testing.TB, fsys fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if d.IsDir() {
			all[path] = "/"
			return nil
		}
		content, err := fs.ReadFile(fsys, path)
		all[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryStructure(t *testing.T) {
	fsys, err := sample().open()
	if err != nil {
		t.Fatal(err)
	}
	if fsys.Label() != "LABEL" || fsys.Missing() != 0 {
		t.Errorf("label %q, %d bytes missing", fsys.Label(), fsys.Missing())
	}
	want := map[string]string{
		"Sources": "/", "Sources/install.wim": "wim", "long.txt": "long", "inline.txt": "inline",
		"extended.txt": "extended",
		"empty":        "", "Ünïcødé 漢字 😀.txt": "unicode",
		"many.bin": "first" + strings.Repeat("\x00", 2043+2048) + "third",
	}
	if diff := cmp.Diff(want, contents(t, fsys)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := fstest.TestFS(fsys, "Sources/install.wim", "many.bin"); err != nil {
		t.Error(err)
	}
	found, err := fsys.Stat("long.txt")
	if err != nil || !found.ModTime().Equal(time.Date(2022, 3, 4, 4, 6, 7, 0, time.UTC)) {
		t.Errorf("modified %s, %v", found.ModTime(), err)
	}
}

func TestCaseDoesNotMatter(t *testing.T) {
	fsys, err := sample().open()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"sources/INSTALL.WIM", "SOURCES/install.wim", "üNÏCØDÉ 漢字 😀.TXT"} {
		if _, err := fsys.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := fsys.Stat("sources/boot.wim"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := fsys.Stat("long.txt/below"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestReadsAcrossExtents(t *testing.T) {
	fsys, err := sample().open()
	if err != nil {
		t.Fatal(err)
	}
	file, err := fsys.Open("many.bin")
	if err != nil {
		t.Fatal(err)
	}
	r := file.(io.ReaderAt)
	part := make([]byte, 2052)
	if n, err := r.ReadAt(part, 2047); n != 2052 || err != nil {
		t.Errorf("%d bytes, %v; want 2052", n, err)
	}
	if got := string(part[2049:]); got != "thi" {
		t.Errorf("the bytes end in %q, want thi", got)
	}
	if n, err := r.ReadAt(part, 4099); n != 2 || err != io.EOF {
		t.Errorf("%d bytes, %v; want 2 and the end", n, err)
	}
	if got := string(part[:2]); got != "rd" {
		t.Errorf("the last bytes are %q, want rd", got)
	}
	if n, err := r.ReadAt(part, 5000); n != 0 || err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	if at, err := file.(io.Seeker).Seek(-5, io.SeekEnd); at != 4096 || err != nil {
		t.Errorf("at %d, %v", at, err)
	}
	if rest, err := io.ReadAll(file); string(rest) != "third" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// The names are those of Windows media and worse.
func TestImageOfGenisoimage(t *testing.T) {
	files := map[string]string{
		"sources/install.wim": "wim", "empty": "", "a name with spaces .and. dots...txt": "dots",
		"Ünïcødé-漢字-кириллица.txt": "unicode", strings.Repeat("n", 200) + ".txt": "long",
		strings.Repeat("漢",
			60): "wide",
		"deep" + strings.Repeat("/level", 30) + "/file": "deep",
		"big.bin": strings.Repeat("0123456789abcdef", 300_000),
	}
	for n := range 300 { // a folder of several sectors
		files["many/"+strings.Repeat("x", n%50)+string(rune('a'+n%26))+string(rune('a'+n/26))] = "one"
	}
	folder := t.TempDir()
	mediatest.Write(t, folder, files)
	fsys := openFile(t, mediatest.UDF(t, folder, "SSS_X64FREE_EN-US_DV9", "-D"))
	if fsys.Label() != "SSS_X64FREE_EN-US_DV9" {
		t.Errorf("label %q", fsys.Label())
	}
	got := contents(t, fsys)
	for path, content := range got {
		if content == "/" {
			delete(got, path)
		}
	}
	if diff := cmp.Diff(files, got); diff != "" {
		t.Errorf("(-want +got):\n%.2000s", diff)
	}
	if err := fsys.Whole(); err != nil {
		t.Error(err)
	}
}

// install.wim has more bytes than one extent can hold. The file is sparse, and so is the
// image.
func TestFileOfSeveralExtents(t *testing.T) {
	fsys := openFile(t, bigImage(t))
	found, err := fsys.Stat("sources/install.wim")
	if err != nil || found.Size() != bigSize {
		t.Fatalf("%d bytes, %v", found.Size(), err)
	}
	file, err := fsys.Open("sources/install.wim")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range bigMarks() {
		got := make([]byte, len(want))
		if _, err := file.(io.ReaderAt).ReadAt(got, at); err != nil || string(got) != want {
			t.Errorf("at %d: %q, %v; want %q", at, got, err, want)
		}
	}
}

const bigSize = 1<<30 + 16<<20

// bigMarks returns texts by their offset in the file of bigImage: at its ends, and across the
// end of the longest possible extent.
func bigMarks() map[int64]string {
	return map[int64]string{0: "begin", 1<<30 - 2048 - 4: "boundary", 1<<30 - 4: "a gibibyte", bigSize - 3: "end"}
}

func bigImage(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	mediatest.Write(t, folder, map[string]string{"sources/install.wim": ""})
	file, err := os.OpenFile(filepath.Join(folder, "sources", "install.wim"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(bigSize); err != nil {
		t.Fatal(err)
	}
	for at, text := range bigMarks() {
		if _, err := file.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	return mediatest.UDF(t, folder, "BIG")
}

// Every truncation of an image is either refused or leaves all files whole, and never
// reads wrong bytes.
func TestCutShort(t *testing.T) {
	whole := sample()
	want, err := whole.open()
	if err != nil {
		t.Fatal(err)
	}
	all := contents(t, want)
	for sectors := int64(1); sectors < 2048; sectors += 3 {
		cut := &mediatest.Sparse{Sectors: whole.Sectors, Size: sectors*2048 - 700}
		fsys, err := udf.Open(cut, cut.Size)
		if err == nil {
			err = fsys.Whole()
		}
		var short *discfs.CutShortError
		var format *discfs.FormatError
		switch {
		case err == nil:
			if fsys.Missing() == 0 {
				t.Errorf("%d sectors: nothing is missing", sectors)
			}
			if diff := cmp.Diff(all, contents(t, fsys)); diff != "" {
				t.Errorf("%d sectors: %s", sectors, diff)
			}
		case sectors < 19 && errors.As(err, &format):
		case !errors.As(err, &short):
			t.Errorf("%d sectors: %v", sectors, err)
		case short.Have != cut.Size || short.Want <= short.Have:
			t.Errorf("%d sectors: %v", sectors, err)
		}
	}
}

func TestErrorOfACutFile(t *testing.T) {
	err := error(&discfs.CutShortError{Have: 4_100_000_000, Want: 5_044_094_976})
	const want = "the file is cut short: it has 4.1 GB of at least 5.0 GB (4100000000 of 5044094976 bytes); download or " +
		"copy it again"
	if err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// A flipped bit of a structure is found. The bytes between structures have no checksum, and
// some bits of a tag no meaning.
func TestFlippedBits(t *testing.T) {
	want, err := sample().open()
	if err != nil {
		t.Fatal(err)
	}
	all := contents(t, want)
	data := map[int64]bool{} // sectors with content of files
	for _, block := range []int64{7, 9, 13, 16, 20, 21} {
		data[partitionStart+block] = true
	}
	for number := range sample().Sectors {
		if data[number] || number < 32 {
			continue
		}
		for at := 0; at < 600; at += 7 {
			i := sample()
			i.Sectors[number][at] ^= 1 << (at % 8)
			fsys, err := i.open()
			if err != nil {
				continue
			}
			got := map[string]string{}
			err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
				if err != nil || path == "." {
					return err
				}
				if got[path] = "/"; d.IsDir() {
					return nil
				}
				content, err := fs.ReadFile(fsys, path)
				got[path] = string(content)
				return err
			})
			if err == nil {
				if diff := cmp.Diff(all, got); diff != "" {
					t.Errorf("sector %d, byte %d: %s", number, at, diff)
				}
			}
		}
	}
}

// If the anchor or the main descriptors are damaged, their copies are used.
func TestCopiesOfTheDescriptors(t *testing.T) {
	for name, damage := range map[string]func(image){
		"main sequence": func(i image) { i.Sectors[32][30] ^= 1 },
		"anchor": func(i image) {
			anchor := bytes.Clone(i.Sectors[256][:512])
			i.Sectors[256][17] ^= 1
			i.Put(2047, tagged(anchor, 2, 2047))
		},
	} {
		i := sample()
		damage(i)
		fsys, err := i.open()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := fs.ReadFile(fsys, "sources/install.wim"); string(got) != "wim" || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A symbolic link, which no Windows media have, is listed and cannot be read.
func TestIrregularFile(t *testing.T) {
	i := newImage()
	i.folder(rootBlock, identifier("link", 0, 50))
	i.block(50, fileEntry(50, 12, 3, 4, []byte("etc/")))
	fsys, err := i.open()
	if err != nil {
		t.Fatal(err)
	}
	found, err := fsys.Stat("link")
	if err != nil || found.Mode().Type() != fs.ModeIrregular {
		t.Errorf("%v, %v", found, err)
	}
	if content, err := fs.ReadFile(fsys, "link"); err == nil || len(content) > 0 {
		t.Errorf("%q, %v", content, err)
	}
	if _, err := fs.ReadFile(fsys, "."); err == nil {
		t.Error("a folder was read")
	}
}

// Several goroutines may read one image.
func TestReadsAtOnce(t *testing.T) {
	fsys, err := sample().open()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if got, err := fs.ReadFile(fsys, "SOURCES/install.wim"); string(got) != "wim" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	group.Wait()
}

// A reader that fails is neither a damaged nor a cut image.
func TestReaderThatFails(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := udf.Open(readerFunc(func([]byte, int64) (int, error) { return 0, broken }), 1<<30)
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

type readerFunc func([]byte, int64) (int, error)

func (f readerFunc) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }
