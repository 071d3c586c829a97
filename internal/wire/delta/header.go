package delta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Header is the beginning of every patch.
type Header struct {
	Variant              Variant
	OldSize, NewSize     int64
	OldSHA256, NewSHA256 [32]byte
}

const (
	magic   = "swdtdiff"
	version = 1

	headerSize = len(magic) + 2 + 2*8 + 2*32

	// maxSize limits the files that a patch may describe. It is far larger than
	// any real file, and so small that sums of positions cannot overflow.
	maxSize = 1 << 40
)

// ReadHeader reads the header of a patch, and nothing beyond it.
func ReadHeader(r io.Reader) (Header, error) {
	var raw [headerSize]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return Header{}, readError("its header", err)
	}
	if !bytes.Equal(raw[:len(magic)], []byte(magic)) {
		return Header{}, corrupt("it is not a patch")
	}
	rest := raw[len(magic):]
	if rest[0] != version {
		return Header{}, corrupt("its format has version %d; only version %d is supported", rest[0], version)
	}
	h := Header{Variant: Variant(rest[1])}
	if h.Variant > Small {
		return Header{}, corrupt("its variant %d is unknown", rest[1])
	}
	oldSize, newSize := binary.LittleEndian.Uint64(rest[2:]), binary.LittleEndian.Uint64(rest[10:])
	if oldSize > maxSize || newSize > maxSize {
		return Header{}, corrupt("it applies to files of %d and %d bytes", oldSize, newSize)
	}
	h.OldSize, h.NewSize = int64(oldSize), int64(newSize)
	copy(h.OldSHA256[:], rest[18:])
	copy(h.NewSHA256[:], rest[50:])
	return h, nil
}

func (h Header) append(to []byte) []byte {
	to = append(to, magic...)
	to = append(to, version, byte(h.Variant))
	to = binary.LittleEndian.AppendUint64(to, uint64(h.OldSize))
	to = binary.LittleEndian.AppendUint64(to, uint64(h.NewSize))
	to = append(to, h.OldSHA256[:]...)
	return append(to, h.NewSHA256[:]...)
}

// readError returns the error for a failed read of a part of a patch; the parameter `what` is the
// name of the part. If the reader failed, the result wraps the reader's error. If the patch is
// damaged or ends too early, the result is a *CorruptError.
func readError(what string, err error) error {
	var said *CorruptError
	if errors.As(err, &said) {
		return err
	}
	var broken *brokenReaderError
	if errors.As(err, &broken) {
		return fmt.Errorf("read the patch: %w", broken.err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &CorruptError{What: "it ends within " + what, Err: io.ErrUnexpectedEOF}
	}
	return &CorruptError{What: what + " are damaged", Err: err}
}
