package udf_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
	"github.com/swdt-dev/swdt/internal/vm/media/udf"
)

// walk reads the whole tree, and returns the number of entries.
func walk(fsys *udf.FS) (int, error) {
	entries := 0
	return entries, fs.WalkDir(fsys, ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		entries++
		_, err = d.Info()
		return err
	})
}

// A hostile image is refused with a reason, without endless work. The checksums of all these
// images are right.
func TestHostileImages(t *testing.T) {
	root := func(names ...[]byte) func(image) {
		return func(i image) { i.folder(rootBlock, names...); i.file(50, "content") }
	}
	for name, c := range map[string]struct {
		make func(image)
		want string
	}{
		"a name that leads out": {root(identifier("..", 0, 50)), `an entry has the name ".."`},
		"a path as a name": {root(identifier("../../etc/passwd", 0, 50)),
			"a character that no file name may have"},
		"a Windows path as a name":  {root(identifier(`..\x`, 0, 50)), "a character that no file name may have"},
		"an empty name":             {root(identifier("", 0, 50)), `an entry has the name ""`},
		"a name of an unknown form": {root(rawIdentifier([]byte{99, 'a'}, 0, 50)), `an entry has the name ""`},
		"a name with a NUL":         {root(identifier("a\x00b", 0, 50)), "a character that no file name may have"},
		"a name with controls":      {root(identifier("a\x1b[2Jb", 0, 50)), `the name "a\x1b[2Jb" has a character`},
		"two files of one name": {root(identifier("a", 0, 50), identifier("a", 0, 50)),
			`two entries with the name "a"`},
		"a folder in itself": {root(identifier("loop", isFolder, rootBlock)),
			`the folder "loop" has two places`},
		"a folder in its child": {func(i image) {
			i.folder(rootBlock, identifier("a", isFolder, 10))
			i.folder(10, identifier("b", isFolder, 20))
			i.folder(20, identifier("a", isFolder, 10))
		}, `the folder "a" has two places`},
		"a tree that doubles at each level": {func(i image) {
			for level := range uint32(40) {
				block := rootBlock + 2*level
				i.folder(block, identifier("a", isFolder, block+2), identifier("b", isFolder, block+2))
			}
		}, `the folder "b" has two places`},
		"a tree without end": {func(i image) {
			for level := range uint32(100) {
				i.folder(rootBlock+2*level, identifier("a", isFolder, rootBlock+2*level+2))
			}
		}, "folders are nested deeper than 64 levels"},
		"a file that is a folder by name": {root(identifier("a", isFolder, 50)),
			"disagree on whether this is a folder"},
		"a name that leads out of the partition": {root(identifier("a", 0, 1<<31)), "outside of the partition"},
		"content outside of the partition": {func(i image) {
			i.folder(rootBlock, identifier("a", 0, 50))
			i.block(50, fileEntry(50, 5, 0, 5000, short(5000, 1789)))
		}, "lie outside of the partition"},
		"a folder of gigabytes": {func(i image) {
			i.block(rootBlock, fileEntry(rootBlock, 4, 0, 1<<29, short(1<<29, 2)))
		}, "lie outside of the partition"},
		"a folder of gigabytes that are not recorded": {func(i image) {
			i.block(rootBlock, fileEntry(rootBlock, 4, 0, 1<<29, short(1<<29|1<<30, 2)))
		}, "the folders of the image have more than 64 MB of names"},
		"a file of more bytes than exist": {func(i image) {
			i.folder(rootBlock, identifier("a", 0, 50))
			i.block(50, fileEntry(50, 5, 0, 1<<62, short(2048, 51)))
		}, "the file entry states 4611686018427387904 bytes, and its extents hold 2048"},
		"a file of a negative size": {func(i image) {
			i.folder(rootBlock, identifier("a", 0, 50))
			i.block(50, fileEntry(50, 5, 3, -1, nil))
		}, "states a size of 18446744073709551615 bytes"},
		"an entry of the wrong block": {func(i image) {
			i.folder(rootBlock, identifier("a", 0, 50))
			i.block(50, fileEntry(51, 5, 3, 0, nil))
		}, "belongs to block 51, and is in block 50"},
		"continuations in a circle": {func(i image) {
			i.folder(rootBlock, identifier("a", 0, 50))
			continuation := append(make([]byte, 24), short(2048|3<<30, 51)...)
			binary.LittleEndian.PutUint32(continuation[20:], 8)
			i.block(51, tagged(continuation, 258, 51))
			i.block(50, fileEntry(50, 5, 0, 5, short(2048|3<<30, 51)))
		}, "the extents of the file have no end"},
		"extents in a circle": {func(i image) {
			i.folder(rootBlock, identifier("a", 0, 50))
			var extents []byte
			for range 200 {
				extents = append(extents, short(1, 52)...)
			}
			continuation := append(make([]byte, 24), append(extents, short(2048|3<<30, 51)...)...)
			binary.LittleEndian.PutUint32(continuation[20:], uint32(len(extents)+8))
			i.block(51, tagged(continuation, 258, 51))
			i.block(50, fileEntry(50, 5, 0, 1<<40, short(2048|3<<30, 51)))
		}, "the extents of the file have no end"},
		"an entry longer than its sector": {func(i image) {
			i.folder(rootBlock, identifier("a", 0, 50))
			entry := fileEntry(50, 5, 0, 5, short(5, 51))
			binary.LittleEndian.PutUint32(entry[168:], 1<<32-100)
			i.block(50, tagged(entry, 261, 50))
		}, "the file entry is longer than its sector"},
		"volume descriptors in a circle": {func(i image) {
			i.folder(rootBlock)
			for _, start := range []uint32{32, 64} {
				pointer := make([]byte, 512)
				copy(pointer[20:], extent(2048, start))
				i.Put(int64(start), tagged(pointer, 3, start))
			}
		}, "the volume descriptor sequence has no end"},
		"no partition": {func(i image) {
			i.folder(rootBlock)
			for _, start := range []uint32{32, 64} {
				i.Put(int64(start), tagged(make([]byte, 512), 7, start))
			}
		}, "a partition that is not described"},
		"a later version": {func(i image) {
			i.folder(rootBlock)
			for _, start := range []uint32{33, 65} {
				v := logicalVolume()
				binary.LittleEndian.PutUint32(v[268:], 2)
				i.Put(int64(start), tagged(v, 6, start))
			}
		}, "of a later version than 1.02, or rewritable; use the .iso file as Microsoft publishes it"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newImage()
			c.make(i)
			fsys, err := i.open()
			if err == nil {
				_, err = walk(fsys)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			var damage *discfs.DamageError
			var unsupported *discfs.UnsupportedError
			if !errors.As(err, &damage) && !errors.As(err, &unsupported) {
				t.Errorf("%v has another type", err)
			}
		})
	}
}

// An error names the place on the image, and what to do.
func TestErrorNamesThePlace(t *testing.T) {
	i := sample()
	i.Sectors[partitionStart+6][60] ^= 1
	fsys, err := i.open()
	if err != nil {
		t.Fatal(err)
	}
	_, err = fsys.Stat("sources/install.wim")
	const want = "stat sources/install.wim: sector 263 (byte 538624): the CRC of the file entry is wrong; " +
		"the image is damaged: download or copy it again"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A folder can state a million names in little space: all extents are the same sector. The
// limit of the tree ends it before it takes much memory.
func TestFolderWithAMillionNames(t *testing.T) {
	i := newImage()
	names := make([]byte, 0, 2048)
	for n := range 45 {
		names = append(names, identifier(fmt.Sprintf("%02d", n), 0, 9)...)
	}
	names = append(names, rawIdentifier(append([]byte{8}, strings.Repeat("x", 2048-len(names)-39)...), isDeleted, 9)...)
	i.block(5, names)
	var extents []byte
	for range 200 {
		extents = append(extents, short(2048, 5)...)
	}
	i.block(rootBlock, fileEntry(rootBlock, 4, 0, 200*2048, extents))
	fsys, err := i.open()
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = walk(fsys)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), `two entries with the name "00"`) {
		t.Error(err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d MB were allocated", used>>20)
	}
}

// Folders can share their data, and have names that do not count: reading them all would
// take hours.
func TestFoldersOfDeletedNames(t *testing.T) {
	i := newImage()
	var deleted []byte
	for len(deleted)+44 <= 1<<20 {
		deleted = append(deleted, identifier("gone", isDeleted, 9)...)
	}
	i.block(1000, deleted)
	var root []byte
	for n := range uint32(900) {
		root = append(root, identifier(fmt.Sprint("folder", n), isFolder, 10+n)...)
		var extents []byte
		for range 15 {
			extents = append(extents, short(uint32(len(deleted)), 1000)...)
		}
		i.block(10+n, fileEntry(10+n, 4, 0, 15*int64(len(deleted)), extents))
	}
	i.block(1600, root)
	i.block(rootBlock, fileEntry(rootBlock, 4, 0, int64(len(root)), short(uint32(len(root)), 1600)))
	fsys, err := i.open()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := walk(fsys)
	want := "the folders of the image have more than 64 MB of names"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if entries > 6 {
		t.Errorf("%d entries were read, want at most 6", entries)
	}
}

// Many folders with many names each exceed the limit of the tree.
func TestTreeWithTooManyEntries(t *testing.T) {
	i := newImage()
	i.Size = 4096 * 2048
	partition := partition()
	binary.LittleEndian.PutUint32(partition[192:], 4096-partitionStart)
	i.Put(32, tagged(partition, 5, 32))
	// Each of 500 folders has the same 8 sectors of names behind some of its own.
	var same []byte
	for n := range 8 * 48 {
		same = append(same, identifier(fmt.Sprintf("%03d", n), 0, 9)...)
	}
	i.block(1000, same)
	var root []byte
	for n := range uint32(500) {
		root = append(root, identifier(fmt.Sprint("folder", n), isFolder, 1100+n)...)
		length := uint32(len(same))
		i.block(1100+n, fileEntry(1100+n, 4, 0, int64(length), short(length, 1000)))
	}
	i.block(9, fileEntry(9, 5, 3, 0, nil))
	i.block(2000, root)
	i.block(rootBlock, fileEntry(rootBlock, 4, 0, int64(len(root)), short(uint32(len(root)), 2000)))
	fsys, err := i.open()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := walk(fsys)
	if want := "the image has more than 65536 files"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if entries > discfs.MaxEntries {
		t.Errorf("%d entries were read, want at most %d", entries, discfs.MaxEntries)
	}
}
