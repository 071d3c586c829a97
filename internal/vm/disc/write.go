package disc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// WriteTo writes the image, front to back, and returns the number of bytes. It reads each
// file once. If the size of a file has changed since it was added, the error names the
// file.
func (i *Image) WriteTo(w io.Writer) (int64, error) {
	l := i.lay()
	out := &stream{w: bufio.NewWriterSize(w, 1<<16)}
	out.zeros(systemArea * sector)
	for _, v := range l.volumes {
		out.put(i.descriptor(v, l.sectors))
	}
	out.put(terminator())
	for _, v := range l.volumes {
		out.put(v.pathTable(binary.LittleEndian))
		out.put(v.pathTable(binary.BigEndian))
	}
	for _, v := range l.volumes {
		for _, folder := range v.folders {
			out.put(i.directory(folder))
		}
	}
	for _, file := range l.files {
		out.copy(file)
	}
	if out.err == nil {
		out.err = out.w.Flush()
	}
	return out.n, out.err
}

// stream writes pieces of whole sectors until a write or a read fails.
type stream struct {
	w   *bufio.Writer
	n   int64
	err error
}

// put writes bytes, and zeros to the end of the sector.
func (s *stream) put(content []byte) {
	if s.err != nil {
		return
	}
	n, err := s.w.Write(content)
	s.n += int64(n)
	s.err = err
	s.align()
}

func (s *stream) copy(file *entry) {
	if s.err != nil {
		return
	}
	if err := s.content(file); err != nil {
		s.err = fmt.Errorf("put %q on the disc: %w", file.path, err)
	}
	s.align()
}

// content copies a file, which must have the size that the directories state.
func (s *stream) content(file *entry) error {
	from, err := file.open()
	if err != nil {
		return err
	}
	n, err := io.Copy(s.w, io.LimitReader(from, file.size))
	s.n += n
	if err == nil && n < file.size {
		err = fmt.Errorf("the file has %d bytes, but had %d when it was added; try again", n, file.size)
	}
	if err == nil {
		err = ended(from, file.size)
	}
	return errors.Join(err, from.Close())
}

// ended returns an error if a reader has any byte left. size is the number of bytes that were read.
func ended(from io.Reader, size int64) error {
	n, err := io.ReadFull(from, make([]byte, 1))
	switch {
	case n > 0:
		return fmt.Errorf("the file has more than the %d bytes that it had when it was added; try again", size)
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

func (s *stream) align() { s.zeros(int(wholeSectors(s.n) - s.n)) }

func (s *stream) zeros(count int) {
	if s.err != nil || count == 0 {
		return
	}
	n, err := s.w.Write(make([]byte, count))
	s.n += int64(n)
	s.err = err
}
