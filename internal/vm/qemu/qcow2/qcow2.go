// Package qcow2 reads the header of a QEMU disk image, to decide whether the image may be
// used at all.
//
// QEMU does what an image's header requests: the header can name a backing file or a data file, by
// any path of your machine or a URL. QEMU opens that file with your rights and shows it to the
// guest. So this package reads the header before QEMU sees the image, and opens no other file.
package qcow2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/localfile"
)

var magic = [4]byte{'Q', 'F', 'I', 0xfb}

// Bits of the incompatible features, which a reader must know.
const (
	dirty        = 1 << 0
	externalData = 1 << 2
	compression  = 1 << 3
	extendedL2   = 1 << 4
)

// MaxDisk bounds a disk that swdt accepts, in bytes: 64 TiB, the limit of Hyper-V.
const MaxDisk = 64 << 40

// ErrUnsafe is returned for an image that leads QEMU to other files.
var ErrUnsafe = errors.New("the image leads to another file")

// ErrFormat is returned for a file that is no qcow2 image, or that swdt cannot use.
var ErrFormat = errors.New("the file is no qcow2 image")

// header is the fixed part of the format, as QEMU's docs/interop/qcow2.txt describes it.
type header struct {
	Magic                 [4]byte
	Version               uint32
	BackingOffset         uint64
	BackingSize           uint32
	ClusterBits           uint32
	Size                  uint64
	Crypt                 uint32
	L1Size                uint32
	L1Offset              uint64
	RefcountOffset        uint64
	RefcountClusters      uint32
	Snapshots             uint32
	SnapshotsOffset       uint64
	IncompatibleFeatures  uint64 // from version 3 on
	CompatibleFeatures    uint64
	AutoclearFeatures     uint64
	RefcountOrder, Length uint32
}

// headerV2 is the length of the header in version 2 of the format, in bytes.
const headerV2 = 72

// Standalone checks that an image consists of one file, and returns the size of its disk in bytes.
// The error is an ErrUnsafe if the image leads to another file, and an ErrFormat if swdt cannot use
// the image.
func Standalone(path string) (int64, error) {
	file, _, err := localfile.OpenRegular(path)
	switch {
	case errors.Is(err, localfile.ErrNotRegular):
		return 0, fmt.Errorf("read image: %w: %w", err, ErrFormat)
	case err != nil:
		return 0, err
	}
	defer file.Close()
	size, err := standalone(file)
	if err != nil {
		return 0, fmt.Errorf("read image %s: %w", path, err)
	}
	return size, nil
}

func standalone(r io.Reader) (int64, error) {
	var raw [104]byte
	n, err := io.ReadFull(r, raw[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if n < headerV2 || [4]byte(raw[:4]) != magic {
		return 0, fmt.Errorf("%w; convert it: `qemu-img convert -O qcow2 OLD NEW`", ErrFormat)
	}
	var h header
	if _, err := binary.Decode(raw[:], binary.BigEndian, &h); err != nil {
		return 0, err
	}
	switch h.Version {
	case 2:
		h.IncompatibleFeatures = 0 // in version 2, these bytes belong to extensions
	case 3:
		if n < len(raw) {
			return 0, fmt.Errorf("%w: it is cut short", ErrFormat)
		}
	default:
		return 0, fmt.Errorf("%w of a known version: it has version %d", ErrFormat, h.Version)
	}
	switch unknown := h.IncompatibleFeatures &^ (dirty | externalData | compression | extendedL2); {
	case h.BackingOffset != 0 || h.BackingSize != 0:
		return 0, fmt.Errorf("%w, its backing file; flatten it: `qemu-img convert -O qcow2 OLD NEW`", ErrUnsafe)
	case h.IncompatibleFeatures&externalData != 0:
		return 0, fmt.Errorf("%w, its data file; flatten it: `qemu-img convert -O qcow2 OLD NEW`", ErrUnsafe)
	case unknown != 0:
		return 0, fmt.Errorf("%w that swdt knows: it has features %#x", ErrFormat, unknown)
	case h.Crypt != 0:
		return 0, fmt.Errorf("%w that swdt can use: it is encrypted", ErrFormat)
	case h.Size == 0 || h.Size > MaxDisk:
		return 0, fmt.Errorf("%w: a disk of %d bytes", ErrFormat, h.Size)
	}
	return int64(h.Size), nil
}
