// Package discfs presents the files of an image of an optical disc as an fs.FS. The packages udf
// and iso9660 read the formats on the disc; this package has the code that both use: reads within
// the image, limits, rules for names, and look-up that ignores case, as Windows does.
//
// An image is not trusted. A tree has at most 65,536 entries and 64 levels. Each folder has one
// place in the tree, so that no loop exists, and no name leads out of its folder.
//
//   - discfs.go: Image, bounded reads
//   - errors.go: a file that is cut short, damaged, or of another format
//   - tree.go: FS, look-up by path
//   - file.go: open files and folders
//   - name.go: the names that are accepted
package discfs

import (
	"errors"
	"fmt"
	"io"
)

// SectorSize is the size of a sector of a CD or DVD, in bytes.
const SectorSize = 2048

// Image is the bytes of a disc, as a file on your machine holds them.
type Image struct {
	r    io.ReaderAt
	size int64
	want int64
}

// NewImage returns the image of size bytes that r reads.
func NewImage(r io.ReaderAt, size int64) *Image { return &Image{r: r, size: size} }

// Size returns the number of bytes that the image has.
func (i *Image) Size() int64 { return i.size }

// Expect records the byte offset at which the file system ends. The error for a read beyond the end
// of the image then names the size that the image should have.
func (i *Image) Expect(end int64) { i.want = max(i.want, end) }

// Missing returns the number of bytes of the file system that lie beyond the end of the
// image.
func (i *Image) Missing() int64 { return max(0, i.want-i.size) }

// Read fills p with the bytes from offset on. The error is a *CutShortError if the image ends
// before p is full.
func (i *Image) Read(p []byte, offset int64) error {
	end := offset + int64(len(p))
	if offset < 0 || end < offset {
		return Damage(offset, "an offset is beyond every possible image")
	}
	if end > i.size {
		return i.cutShort(end)
	}
	n, err := i.r.ReadAt(p, offset)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF): // the file became shorter meanwhile
		return &CutShortError{Have: offset + int64(n), Want: max(i.want, i.size)}
	}
	return fmt.Errorf("read the image at byte %d: %w", offset, err)
}

// Sector returns the bytes of a sector.
func (i *Image) Sector(number int64) ([]byte, error) {
	sector := make([]byte, SectorSize)
	if err := i.Read(sector, number*SectorSize); err != nil {
		return nil, err
	}
	return sector, nil
}

func (i *Image) cutShort(end int64) error {
	return &CutShortError{Have: i.size, Want: max(i.want, end)}
}
