// Package wim reads what a Windows image file (.wim, .esd, .swm) states about itself: its
// header, and the XML document that lists the editions of Windows in it. It reads no content.
//
//   - wim.go: Read, the header
//   - editions.go: the XML document
package wim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of what a file may state.
const (
	maxXML    = 1 << 20 // bytes; Windows media have some 20 kB
	maxImages = 256
)

const headerSize = 208

// Bits of a header's flags.
const (
	flagCompressed = 0x00000002
	flagSpanned    = 0x00000008
	flagXPRESS     = 0x00020000
	flagLZX        = 0x00040000
	flagLZMS       = 0x00080000
)

// versionSolid is the version of files in which many files are compressed together, as in
// install.esd.
const versionSolid = 0x0e00

// Info is the content of a file's header and of its XML document.
type Info struct {
	Compression string // none, XPRESS, LZX or LZMS
	Solid       bool   // many files are compressed together, as in install.esd
	Part        int    // number of this file among the Parts files of an image, from 1
	Parts       int
	Images      []Image
}

// Error reports a file that is no Windows image file, or a damaged one.
type Error struct {
	Offset  int64 // bytes from the start of the file
	Problem string
}

func (e *Error) Error() string {
	return fmt.Sprintf("byte %d of the Windows image: %s", e.Offset, e.Problem)
}

func broken(offset int64, format string, args ...any) error {
	return &Error{Offset: max(offset, 0), Problem: fmt.Sprintf(format, args...)}
}

// resource is the position of a resource of the file.
type resource struct {
	offset, size int64
	flags        byte
}

// Read reads the header and the XML document of a file of size bytes.
func Read(r io.ReaderAt, size int64) (Info, error) {
	header := make([]byte, headerSize)
	if err := readFull(r, header, 0, size); err != nil {
		return Info{}, err
	}
	switch magic := string(header[:8]); {
	case magic == "WLPWM\x00\x00\x00":
		return Info{}, broken(0, "the file is made for reading from a pipe; convert it with `wimlib-imagex export`")
	case magic != "MSWIM\x00\x00\x00":
		return Info{}, broken(0, "the file does not begin as Windows image files do")
	case binary.LittleEndian.Uint32(header[8:]) < headerSize:
		return Info{}, broken(8, "the header is too short")
	}
	info := Info{
		Compression: compression(binary.LittleEndian.Uint32(header[16:])),
		Solid:       binary.LittleEndian.Uint32(header[12:]) == versionSolid,
		Part:        int(binary.LittleEndian.Uint16(header[40:])),
		Parts:       int(binary.LittleEndian.Uint16(header[42:])),
	}
	if info.Part < 1 || info.Part > info.Parts {
		return Info{}, broken(40, "the file is part %d of %d", info.Part, info.Parts)
	}
	text, err := readXML(r, size, parseResource(header[72:]))
	if err != nil {
		return Info{}, err
	}
	info.Images, err = parseImages(text, int(binary.LittleEndian.Uint32(header[44:])))
	return info, err
}

func parseResource(data []byte) resource {
	return resource{
		size:   int64(binary.LittleEndian.Uint64(data) & (1<<56 - 1)),
		flags:  data[7],
		offset: int64(binary.LittleEndian.Uint64(data[8:])),
	}
}

func compression(flags uint32) string {
	switch {
	case flags&flagLZMS != 0:
		return "LZMS"
	case flags&flagLZX != 0:
		return "LZX"
	case flags&flagXPRESS != 0:
		return "XPRESS"
	}
	return "none"
}

// readXML reads the XML document, which must be stored without compression.
func readXML(r io.ReaderAt, size int64, at resource) ([]byte, error) {
	const compressed, position = 1 << 2, 72
	switch {
	case at.flags&compressed != 0:
		return nil, broken(position, "the list of editions is compressed")
	case at.size > maxXML:
		return nil, broken(position, "the list of editions has %d bytes", at.size)
	case at.size == 0:
		return nil, broken(position, "the file has no list of editions")
	}
	text := make([]byte, at.size)
	return text, readFull(r, text, at.offset, size)
}

// readFull fills p from an offset in a file of size bytes.
func readFull(r io.ReaderAt, p []byte, offset, size int64) error {
	if offset < 0 || offset > size-int64(len(p)) {
		return broken(offset, "the file ends after %d bytes, before the %d that are needed here", size, len(p))
	}
	n, err := r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return broken(offset+int64(n), "the file ends early")
	}
	return err
}
