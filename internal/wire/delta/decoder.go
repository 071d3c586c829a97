package delta

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// decoder reads one compressed stream of a patch.
type decoder struct {
	what string
	zstd *zstd.Decoder // nil when there is nothing to decompress
	*bufio.Reader
}

func newDecoder(what string, r io.Reader) (*decoder, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(windowSize), zstd.WithDecoderMaxMemory(maxSize))
	if err != nil {
		return nil, err
	}
	return &decoder{what: what, zstd: z, Reader: bufio.NewReaderSize(z, 16<<10)}, nil
}

func (a *applier) stream(i int) (*decoder, error) {
	names := [...]string{"its skips", "its sizes", "its moves", "its gaps", "its values",
		"its images", "its words", "its words' errors", "its operands", "its operands' errors"}
	compressed := bytes.NewReader(a.streams[i])
	if compressed.Len() == 0 {
		return &decoder{what: names[i], Reader: bufio.NewReaderSize(compressed, 16)}, nil
	}
	return newDecoder(names[i], compressed)
}

// close releases the decoder; d may be nil.
func (d *decoder) close() {
	if d != nil && d.zstd != nil {
		d.zstd.Close()
	}
}

// full fills p, or returns an error.
func (d *decoder) full(p []byte) error {
	if _, err := io.ReadFull(d, p); err != nil {
		return d.failed(err)
	}
	return nil
}

// number reads a uvarint of at most 2*maxSize+1, so that a zigzag-encoded distance fits. If the
// stream has ended, the error is io.EOF.
func (d *decoder) number() (int64, error) {
	v, err := readUvarint(d)
	if errors.Is(err, io.EOF) {
		return 0, io.EOF
	}
	if err != nil {
		return 0, d.failed(err)
	}
	if v > 2*maxSize+1 {
		return 0, corrupt("%s contain a number that is too large", d.what)
	}
	return int64(v), nil
}

// end returns an error unless the stream has ended.
func (d *decoder) end() error {
	switch _, err := d.ReadByte(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return d.failed(err)
	}
	return corrupt("%s continue after the end of the file", d.what)
}

// failed adds to err the name of the stream that was being read.
func (d *decoder) failed(err error) error { return readError(d.what, err) }

var errNumberTooLong = errors.New("a number has too many bytes")

// readUvarint reads a number like binary.ReadUvarint, but only numbers below 2^63.
func readUvarint(r io.ByteReader) (uint64, error) {
	var v uint64
	for shift := 0; shift < 63; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			if shift > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errNumberTooLong
}

func unzigzag(v int64) int64 { return v>>1 ^ -(v & 1) }

// countingReader counts the bytes read. It wraps each error of the underlying reader, except io.EOF
// and io.ErrUnexpectedEOF, in a brokenReaderError. So callers can distinguish such an error from
// errors of decompression.
type countingReader struct {
	r   io.Reader
	n   int64
	one [1]byte
}

type brokenReaderError struct{ err error }

func (e *brokenReaderError) Error() string { return e.err.Error() }

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = &brokenReaderError{err}
	}
	return n, err
}

func (c *countingReader) ReadByte() (byte, error) {
	_, err := io.ReadFull(c, c.one[:])
	return c.one[0], err
}
