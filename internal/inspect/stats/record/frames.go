package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// errCut is the error of an incomplete frame.
var errCut = errors.New("the frame is not whole")

// frameSize returns the length of the first frame of data (RFC 8878, sections 3.1.1 and
// 3.1.1.2), or errCut if the frame is incomplete.
func frameSize(data []byte) (int, error) {
	if magic := []byte{0x28, 0xB5, 0x2F, 0xFD}; !bytes.HasPrefix(data, magic[:min(len(data), len(magic))]) {
		return 0, errors.New("no zstd frame")
	}
	var header zstd.Header
	if err := header.Decode(data); err != nil {
		if len(data) < zstd.HeaderMaxSize {
			return 0, errCut
		}
		return 0, fmt.Errorf("no zstd frame: %w", err)
	}
	const runLength = 1
	size := header.HeaderSize
	for last := false; !last; {
		if len(data) < size+3 {
			return 0, errCut
		}
		block := binary.LittleEndian.Uint16(data[size:])
		bits := uint32(block) | uint32(data[size+2])<<16
		last = bits&1 == 1
		length := int(bits >> 3)
		if bits>>1&3 == runLength {
			length = 1
		}
		size += 3 + length
	}
	if header.HasCheckSum {
		size += 4
	}
	return whole(size, data)
}

func whole(size int, data []byte) (int, error) {
	if size > len(data) {
		return 0, errCut
	}
	return size, nil
}
