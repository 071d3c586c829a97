package delta

import (
	"errors"
	"fmt"
	"io"
)

const (
	pageSize  = 64 << 10
	pageSlots = 64
)

// pages reads the old file through a small cache. The blocks are short and
// close to each other, so that a system call for each block would take longer
// than all other work.
type pages struct {
	file  io.ReaderAt
	size  int64
	slots [pageSlots]page
}

type page struct {
	number int64 // counted from 1
	data   []byte
}

func newPages(file io.ReaderAt, size int64) *pages {
	return &pages{file: file, size: size}
}

// read fills p with the bytes of the file from the position `at`. The caller has
// checked that these bytes are inside the file.
func (f *pages) read(p []byte, at int64) error {
	for len(p) > 0 {
		data, err := f.page(at / pageSize)
		if err != nil {
			return err
		}
		n := copy(p, data[at%pageSize:])
		p, at = p[n:], at+int64(n)
	}
	return nil
}

func (f *pages) page(number int64) ([]byte, error) {
	slot := &f.slots[number%pageSlots]
	if slot.number == number+1 {
		return slot.data, nil
	}
	if slot.data == nil {
		slot.data = make([]byte, pageSize)
	}
	slot.number = 0
	want := min(pageSize, f.size-number*pageSize)
	n, err := f.file.ReadAt(slot.data[:want], number*pageSize)
	if int64(n) < want {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read the old file of the patch: %w", err)
	}
	slot.number, slot.data = number+1, slot.data[:want]
	return slot.data, nil
}
