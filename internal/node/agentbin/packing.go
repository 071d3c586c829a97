package agentbin

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Pack compresses an executable into the format that Unpack reads. The same input
// gives the same output.
func Pack(executable []byte) ([]byte, error) {
	sum := sha256.Sum256(executable)
	header := binary.LittleEndian.AppendUint32(nil, frameMagic)
	header = binary.LittleEndian.AppendUint32(header, frameLength)
	header = append(header, sum[:]...)
	header = binary.LittleEndian.AppendUint64(header, uint64(len(executable)))

	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("compress the agent: %w", err)
	}
	return encoder.EncodeAll(executable, header), nil
}

// FromBytes returns an uncompressed agent, for tests and the sandbox.
func FromBytes(executable []byte) Agent {
	sum := sha256.Sum256(executable)
	return Agent{
		Hash: hex.EncodeToString(sum[:]),
		Size: int64(len(executable)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(executable)), nil },
	}
}
