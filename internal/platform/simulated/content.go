package simulated

import (
	"io"
	"slices"
)

const chunkSize = 256 << 10

// content is a file's bytes in chunks, so that appending never copies earlier bytes. Bytes that are
// in a chunk never change, since writeAt replaces the chunk, so a contentReader needs no lock.
type content struct {
	chunks [][]byte // every chunk except the last is full
	size   int64
}

func (c *content) append(data []byte) {
	c.size += int64(len(data))
	for len(data) > 0 {
		if n := len(c.chunks); n == 0 || len(c.chunks[n-1]) == chunkSize {
			c.chunks = append(c.chunks, make([]byte, 0, min(chunkSize, max(len(data), 512))))
		}
		last := &c.chunks[len(c.chunks)-1]
		n := min(chunkSize-len(*last), len(data))
		*last = append(*last, data[:n]...)
		data = data[n:]
	}
}

// writeAt replaces the bytes at offset and continues past the end; it fills a
// gap before a later offset with zeros.
func (c *content) writeAt(data []byte, offset int64) {
	if gap := offset - c.size; gap > 0 {
		c.append(make([]byte, gap))
	}
	for len(data) > 0 && offset < c.size {
		i := offset / chunkSize
		chunk := slices.Clone(c.chunks[i]) // a reader may be using the old chunk
		n := copy(chunk[offset%chunkSize:], data)
		c.chunks[i] = chunk
		data, offset = data[n:], offset+int64(n)
	}
	c.append(data)
}

func (c *content) truncate(size int64) {
	if size >= c.size {
		return
	}
	full, rest := int(size/chunkSize), int(size%chunkSize)
	kept := slices.Clone(c.chunks[:full])
	if rest > 0 {
		kept = append(kept, slices.Clone(c.chunks[full][:rest]))
	}
	c.chunks, c.size = kept, size
}

// reader returns a reader of the present content.
func (c *content) reader() contentReader {
	return contentReader{chunks: slices.Clone(c.chunks), size: c.size}
}

type contentReader struct {
	chunks [][]byte
	size   int64
}

func (r contentReader) ReadAt(b []byte, offset int64) (n int, err error) {
	for n < len(b) && offset < r.size {
		chunk := r.chunks[offset/chunkSize]
		copied := copy(b[n:], chunk[offset%chunkSize:])
		n += copied
		offset += int64(copied)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (r contentReader) stream() *io.SectionReader { return io.NewSectionReader(r, 0, r.size) }
