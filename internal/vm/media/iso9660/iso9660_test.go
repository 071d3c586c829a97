package iso9660_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/disc"
	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
	"github.com/swdt-dev/swdt/internal/vm/media/iso9660"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
)

// image is an image with Joliet that a test makes structure by structure. Sector 20 has the
// root folder.
type image struct {
	*mediatest.Sparse
}

const rootSector = 20

// newImage returns an image of 256 sectors, whose root folder has some records.
func newImage(records ...[]byte) image {
	i := image{mediatest.NewSparse(256)}
	i.Put(16, descriptor(1, "PLAIN_LABEL", "", record([]byte{0}, isFolder, 250, 2048)))
	i.Put(17, descriptor(2, "", "%/E", record([]byte{0}, isFolder, rootSector, 2048)))
	i.Put(18, append([]byte{255}, "CD001\x01"...))
	i.folder(rootSector, records...)
	return i
}

func (i image) open() (*iso9660.FS, error) { return iso9660.Open(i, i.Size) }

// folder writes a folder of one sector.
func (i image) folder(sector uint32, records ...[]byte) {
	data := append(record([]byte{0}, isFolder, sector, 2048), record([]byte{1}, isFolder, rootSector, 2048)...)
	for _, r := range records {
		data = append(data, r...)
	}
	i.Put(int64(sector), data)
}

func descriptor(kind byte, label, escape string, root []byte) []byte {
	data := make([]byte, 2048)
	data[0] = kind
	copy(data[1:], "CD001\x01")
	copy(data[40:72], label)
	binary.LittleEndian.PutUint32(data[80:], 256)
	copy(data[88:], escape)
	binary.LittleEndian.PutUint16(data[128:], 2048)
	copy(data[156:190], root)
	return data
}

const (
	isFolder    = 1 << 1
	isContinued = 1 << 7
)

// joliet returns the record of a name.
func joliet(name string, flags byte, sector, length uint32) []byte {
	var encoded []byte
	for _, unit := range utf16.Encode([]rune(name)) {
		encoded = binary.BigEndian.AppendUint16(encoded, unit)
	}
	return record(encoded, flags, sector, length)
}

func record(name []byte, flags byte, sector, length uint32) []byte {
	data := append(make([]byte, 33), name...)
	data = append(data, make([]byte, len(data)%2)...)
	data[0], data[25], data[32] = byte(len(data)), flags, byte(len(name))
	binary.LittleEndian.PutUint32(data[2:], sector)
	binary.LittleEndian.PutUint32(data[10:], length)
	copy(data[18:], []byte{122, 3, 4, 5, 6, 7, 4}) // 2022-03-04 05:06:07, an hour east
	return data
}

func sample() image {
	i := newImage(
		joliet("NetKVM", isFolder, 30, 2048), joliet("readme ü.txt;1", 0, 40, 5), joliet("a;b.txt", 0, 40, 2),
		joliet("empty", 0, 9999, 0),
		joliet("large;1", isContinued, 50, 2048), joliet("large;1", 0, 52, 3))
	i.folder(30, joliet("netkvm.inf", 0, 41, 9))
	i.Put(40, []byte("hello"))
	i.Put(41, []byte("[Version]"))
	i.Put(50, []byte(strings.Repeat("L", 2048)))
	i.Put(52, []byte("end"))
	return i
}

// contents returns the content of each file by path.
func contents(t testing.TB, fsys fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
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
	if got := fsys.Label(); got != "PLAIN_LABEL" {
		t.Errorf("label %q, want PLAIN_LABEL", got)
	}
	if !fsys.Joliet() {
		t.Error("the Joliet names are not used")
	}
	if got := fsys.Missing(); got != 0 {
		t.Errorf("%d bytes are missing, want none", got)
	}
	want := map[string]string{
		"NetKVM/netkvm.inf": "[Version]", "readme ü.txt": "hello", "a;b.txt": "he", "empty": "",
		"large": strings.Repeat("L", 2048) + "end",
	}
	if diff := cmp.Diff(want, contents(t, fsys)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := fstest.TestFS(fsys, "NetKVM/netkvm.inf", "large"); err != nil {
		t.Error(err)
	}
	found, err := fsys.Stat("NETKVM/NetKVM.INF")
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Name(); got != "netkvm.inf" {
		t.Errorf("the name is %q, want netkvm.inf", got)
	}
	if want := time.Date(2022, 3, 4, 4, 6, 7, 0, time.UTC); !found.ModTime().Equal(want) {
		t.Errorf("modified %s, want %s", found.ModTime(), want)
	}
}

func files() map[string]string {
	all := map[string]string{
		"NetKVM/2k22/amd64/netkvm.inf": "[Version]", "empty": "", "a name with spaces.and.dots.txt": "dots",
		"Ünïcødé-漢字.txt": "unicode", strings.Repeat("n", 60) + ".txt": "long",
		"one/two/three/four/five/six/file": "deep",
		"big.bin":                          strings.Repeat("0123456789abcdef", 200_000),
	}
	for n := range 200 { // a folder of several sectors
		all[fmt.Sprintf("many/file with a longer name %03d.dll", n)] = fmt.Sprint(n)
	}
	return all
}

func TestImagesOfTools(t *testing.T) {
	folder := t.TempDir()
	mediatest.Write(t, folder, files())
	for name, path := range map[string]string{
		"xorriso":     mediatest.Joliet(t, folder, "virtio-win-0.1.285"),
		"genisoimage": mediatest.UDF(t, folder, "virtio-win-0.1.285", "-J", "-joliet-long"),
		"swdt":        written(t),
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fsys, err := iso9660.Open(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			if label := fsys.Label(); name != "swdt" && label != "virtio-win-0.1.285" || !fsys.Joliet() {
				t.Errorf("label %q, Joliet %t", label, fsys.Joliet())
			}
			if diff := cmp.Diff(files(), contents(t, fsys)); diff != "" {
				t.Errorf("(-want +got):\n%.2000s", diff)
			}
		})
	}
}

// written makes an image with the package that writes the CD of an installation.
func written(t *testing.T) string {
	i, err := disc.New("SWDT", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files() {
		if err := i.Add(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if _, err := i.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	mediatest.Write(t, folder, map[string]string{"swdt.iso": out.String()})
	return folder + "/swdt.iso"
}

func TestWithoutJoliet(t *testing.T) {
	folder := t.TempDir()
	mediatest.Write(t, folder, map[string]string{"NETKVM/NETKVM.INF": "[Version]", "NODOT": "x"})
	path := t.TempDir() + "/plain.iso"
	mediatest.Run(t, "genisoimage", "-quiet", "-V", "PLAIN", "-o", path, folder)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := iso9660.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if fsys.Joliet() || fsys.Label() != "PLAIN" {
		t.Fatalf("label %q, Joliet %t; want PLAIN without Joliet", fsys.Label(), fsys.Joliet())
	}
	if diff := cmp.Diff(map[string]string{"NETKVM/NETKVM.INF": "[Version]", "NODOT": "x"}, contents(t,
		fsys)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHostileImages(t *testing.T) {
	at := func(sector int64, offset int, value byte) image {
		i := sample()
		i.Sectors[sector][offset] = value
		return i
	}
	var circle []byte
	for range 40 {
		circle = append(circle, joliet("x", isContinued, 40, 5)...)
	}
	for name, c := range map[string]struct {
		image image
		want  string
	}{
		"a name that leads out": {newImage(joliet("..", 0, 40, 5)), `an entry has the name ".."`},
		"a path as a name":      {newImage(joliet("../../x", 0, 40, 5)), "a character that no file name may have"},
		"a Windows path":        {newImage(joliet(`..\x`, 0, 40, 5)), "a character that no file name may have"},
		"a name with controls": {newImage(joliet("a\x1b]0;x\x07", 0, 40, 5)),
			"a character that no file name may have"},
		"an empty name": {newImage(record(nil, 0, 40, 5)), `an entry has the name ""`},
		"a folder in itself": {newImage(joliet("loop", isFolder, rootSector, 2048)),
			`the folder "loop" has two places`},
		"a folder of gigabytes": {newImage(joliet("a", isFolder, 40, 1<<32-1)),
			"the folders of the image have more than 64 MB of names"},
		"a folder without bytes": {newImage(joliet("a", isFolder, 40, 0)), "a folder has 0 bytes of names"},
		"extents without end":    {newImage(circle), `the extents of the file "x" have no end`},
		"extents of two names": {newImage(joliet("x", isContinued, 40, 5), joliet("y", 0, 40, 5)),
			`the extents of the file "x" have no end`},
		"a record without length":  {at(30, 68, 3), "a directory record has the length 3"},
		"a name beyond its record": {at(30, 68+32, 200), "longer than the record"},
		"interleaved":              {at(30, 68+26, 1), "interleaved"},
		"a root without a record":  {at(17, 156, 0), "a directory record has the length 0"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, err := c.image.open()
			if err == nil {
				err = fs.WalkDir(fsys, ".", func(_ string, _ fs.DirEntry, err error) error { return err })
			}
			var damage *discfs.DamageError
			if !errors.As(err, &damage) {
				t.Fatalf("error %v, want a DamageError", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestOtherFiles(t *testing.T) {
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("hello"), "zeros": make([]byte, 1<<16)} {
		_, err := iso9660.Open(bytes.NewReader(data), int64(len(data)))
		var format *discfs.FormatError
		if !errors.As(err, &format) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCutShort(t *testing.T) {
	whole := sample()
	for sectors := int64(19); sectors <= 255; sectors++ {
		cut := &mediatest.Sparse{Sectors: whole.Sectors, Size: sectors*2048 - 100}
		fsys, err := iso9660.Open(cut, cut.Size)
		if err == nil {
			err = fsys.Whole()
		}
		var short *discfs.CutShortError
		if wantWhole := sectors >= 53; errors.As(err, &short) == wantWhole || err != nil && short == nil {
			t.Errorf("%d sectors: %v", sectors, err)
		}
	}
}

// FuzzISO9660 reads everything from images that a fuzzer makes.
func FuzzISO9660(f *testing.F) {
	f.Add(sample().Encode())
	f.Add(newImage(joliet("loop", isFolder, rootSector, 2048)).Encode())
	f.Add(newImage().Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		i := image{mediatest.Decode(data)}
		fsys, err := i.open()
		if err != nil {
			return
		}
		_ = fsys.Whole()
		files := 0
		_ = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return fs.SkipDir
			}
			if !fs.ValidPath(path) {
				t.Errorf("invalid path %q", path)
			}
			if files++; files > 200 || d.IsDir() {
				return nil
			}
			file, err := fsys.Open(path)
			if err != nil {
				t.Fatal(err) // Walk has found it
			}
			part := make([]byte, 5000)
			if n, err := file.Read(part); n > len(part) || n == 0 && err == nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			return nil
		})
	})
}
