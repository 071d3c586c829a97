package udf_test

import (
	"encoding/binary"
	"io"
	"io/fs"
	"testing"

	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
	"github.com/swdt-dev/swdt/internal/vm/media/udf"
)

// FuzzUDF reads everything from images that a fuzzer makes, with the checksums as they are
// or repaired, without which nearly no change would reach further than a checksum.
func FuzzUDF(f *testing.F) {
	f.Add(sample().Encode(), true)
	f.Add(sample().Encode(), false)
	loop := newImage()
	loop.folder(rootBlock, identifier("loop", isFolder, rootBlock))
	f.Add(loop.Encode(), true)
	empty := newImage()
	empty.folder(rootBlock)
	f.Add(empty.Encode(), true)
	f.Fuzz(func(t *testing.T, data []byte, repaired bool) {
		i := image{mediatest.Decode(data)}
		if repaired {
			i.repair()
		}
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
			readSome(t, fsys, path)
			return nil
		})
	})
}

// readSome reads the beginning and the end of a file.
func readSome(t *testing.T, fsys *udf.FS, path string) {
	file, err := fsys.Open(path)
	if err != nil {
		return
	}
	found, err := file.Stat()
	if err != nil || found.Size() < 0 {
		t.Fatalf("%s: %d bytes, %v", path, found.Size(), err)
	}
	part := make([]byte, 5000)
	for _, at := range []int64{0, found.Size() - 3000} {
		n, err := file.(io.ReaderAt).ReadAt(part, max(at, 0))
		if err == nil && n != len(part) || int64(n) > found.Size() {
			t.Fatalf("%s of %d bytes: %d read at %d, %v", path, found.Size(), n, at, err)
		}
	}
}

// repair gives each descriptor the checksums and the position that its place demands.
func (i image) repair() {
	for number, data := range i.Sectors {
		block := number
		if number >= partitionStart {
			block -= partitionStart
		}
		switch tag := binary.LittleEndian.Uint16(data); {
		case tag == 257:
			for len(data) >= 38 && binary.LittleEndian.Uint16(data) == 257 {
				length := (38 + int(data[19]) + int(binary.LittleEndian.Uint16(data[36:])) + 3) &^ 3
				if length > len(data) {
					break
				}
				tagged(data[:length], 257, 0)
				data = data[length:]
			}
		case tag >= 1 && tag <= 9 || tag >= 256 && tag <= 266:
			tagged(data, tag, uint32(block))
		}
	}
}
