package mediatest

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"os"
	"slices"
)

// SectorSize is the size of a sector in bytes.
const SectorSize = 2048

// Sparse is an image in memory of which only some sectors are not zero.
type Sparse struct {
	Sectors map[int64][]byte // content of SectorSize bytes by sector; all others are zero
	Size    int64            // of the image
}

// NewSparse returns an image with this number of sectors, all zero.
func NewSparse(sectors int64) *Sparse {
	return &Sparse{Sectors: map[int64][]byte{}, Size: sectors * SectorSize}
}

// Put writes data from the beginning of a sector on, and zeros up to the end of the last sector.
func (s *Sparse) Put(sector int64, data []byte) {
	for ; len(data) > 0; sector++ {
		s.Sectors[sector] = make([]byte, SectorSize)
		data = data[copy(s.Sectors[sector], data):]
	}
}

// ReadAt implements io.ReaderAt.
func (s *Sparse) ReadAt(p []byte, at int64) (int, error) {
	read := 0
	for read < len(p) && at < s.Size {
		n := int(min(SectorSize-at%SectorSize, s.Size-at, int64(len(p)-read)))
		part := p[read : read+n]
		clear(part)
		if sector := s.Sectors[at/SectorSize]; sector != nil {
			copy(part, sector[at%SectorSize:])
		}
		read, at = read+n, at+int64(n)
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}

// Encode returns the image in the form in which a fuzzer changes it. The form has the size in
// sectors, and then for each sector its number, a length, and its bytes without the zeros at the
// end.
func (s *Sparse) Encode() []byte {
	data := binary.LittleEndian.AppendUint32(nil, uint32(s.Size/SectorSize))
	for _, number := range slices.Sorted(maps.Keys(s.Sectors)) {
		content := s.Sectors[number]
		used := len(content)
		for used > 0 && content[used-1] == 0 {
			used--
		}
		data = binary.LittleEndian.AppendUint32(data, uint32(number))
		data = binary.LittleEndian.AppendUint16(data, uint16(used))
		data = append(data, content[:used]...)
	}
	return data
}

// Decode returns the image that Encode has encoded. It returns an image for any data.
func Decode(data []byte) *Sparse {
	if len(data) < 4 {
		return NewSparse(0)
	}
	s := NewSparse(int64(binary.LittleEndian.Uint32(data)))
	for data = data[4:]; len(data) >= 6; {
		number, used := binary.LittleEndian.Uint32(data), int(binary.LittleEndian.Uint16(data[4:]))
		used = min(used, len(data)-6, SectorSize)
		s.Sectors[int64(number)] = append(make([]byte, 0, SectorSize), data[6:6+used]...)[:SectorSize]
		data = data[6+used:]
	}
	return s
}

// sparseWriter writes a file, and leaves holes for zeros: an image with a large file of
// zeros takes little room, and is written as fast as it is made.
type sparseWriter struct {
	file *os.File
	size int64
	zero [1 << 15]byte
}

func (w *sparseWriter) Write(data []byte) (int, error) {
	for part := range slices.Chunk(data, len(w.zero)) {
		if !bytes.Equal(part, w.zero[:len(part)]) {
			if _, err := w.file.WriteAt(part, w.size); err != nil {
				return 0, err
			}
		}
		w.size += int64(len(part))
	}
	return len(data), nil
}
