// Package agentbin holds swdt-agent.exe, compressed, inside the swdt executable. `make build`
// builds the agent and packs it into internal/node/agentbin/swdt-agent.exe.zst (see the pack
// command). That file is never committed. A plain `go build` of a fresh clone works without that
// file; Embedded then returns ErrNotEmbedded, and package agentbuild builds the agent.
package agentbin

import (
	"bytes"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// The folder has a .md file that this pattern matches too. Without that file, the pattern would
// match no file in a fresh clone, and the package would not compile.
//
//go:embed swdt-agent.exe.*
var embedded embed.FS

const packedName = "swdt-agent.exe.zst"

// ErrNotEmbedded is returned by Embedded if this swdt contains no agent.
var ErrNotEmbedded = errors.New("this swdt was built without its agent: build it with `make build`")

// Agent is an agent that can be installed on a node.
type Agent struct {
	// Hash is the SHA-256 of the executable, 64 lower-case hex digits.
	Hash string
	// Size of the executable, in bytes.
	Size int64
	// Open returns a reader of the executable; it can be called many times.
	Open func() (io.ReadCloser, error)
}

// Embedded returns the agent inside this executable, or ErrNotEmbedded.
func Embedded() (Agent, error) { return fromFS(embedded) }

func fromFS(files fs.FS) (Agent, error) {
	open := func() (io.ReadCloser, error) { return files.Open(packedName) }
	file, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		return Agent{}, ErrNotEmbedded
	}
	if err != nil {
		return Agent{}, fmt.Errorf("read the embedded agent: %w", err)
	}
	defer file.Close()
	// The agent's megabytes are not read until a node needs them.
	return unpack(file, open)
}

// A packed agent is a zstd stream that begins with a skippable frame. The frame holds the agent's
// hash and size; zstd itself ignores the frame.
//
//	4 bytes  the skippable frame's magic number; all numbers are little endian
//	4 bytes  40, the frame's length
//	32 bytes SHA-256 of the executable
//	8 bytes  size of the executable, in bytes
const (
	frameMagic  = 0x184D2A5D
	frameLength = 32 + 8
	headerSize  = 8 + frameLength
)

// Unpack reads a packed agent's header. The executable's bytes are decompressed only when
// they are read.
func Unpack(packed []byte) (Agent, error) {
	return unpack(bytes.NewReader(packed), func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed)), nil
	})
}

func unpack(begin io.Reader, open func() (io.ReadCloser, error)) (Agent, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(begin, header[:]); err != nil ||
		binary.LittleEndian.Uint32(header[:]) != frameMagic ||
		binary.LittleEndian.Uint32(header[4:]) != frameLength {
		return Agent{}, errors.New("the embedded agent is damaged: build swdt again with `make build`")
	}
	return Agent{
		Hash: hex.EncodeToString(header[8:40]),
		Size: int64(binary.LittleEndian.Uint64(header[40:])),
		Open: func() (io.ReadCloser, error) { return decompress(open) },
	}, nil
}

func decompress(open func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	packed, err := open()
	if err != nil {
		return nil, fmt.Errorf("read the embedded agent: %w", err)
	}
	d, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("decompress the embedded agent: %w", err), packed.Close())
	}
	return &unpacking{d, packed}, nil
}

// unpacking decompresses a packed agent while it is read.
type unpacking struct {
	*zstd.Decoder
	packed io.Closer
}

// Close closes the packed agent too.
func (u *unpacking) Close() error {
	u.Decoder.Close()
	return u.packed.Close()
}
