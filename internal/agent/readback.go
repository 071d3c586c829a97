package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/swdt-dev/swdt/internal/platform"
)

// readBehind limits how many writes the reader may be behind the writer.
const readBehind = 32

// readBack reads a file while it is being written, directly behind the writer,
// and hashes what it reads. When the last byte is written the hash is nearly
// complete, so the caller does not wait for another read of the whole file. No
// other process can write the file before it is closed (platform.WriteFile), so
// the bytes that were read early are the final ones. readBack itself is a
// platform.WriteFile.
type readBack struct {
	platform.WriteFile
	ctx    context.Context
	reader io.ReadSeekCloser
	wrote  chan int // sizes of writes
	ended  chan struct{}
	sum    hash.Hash
	size   int64
	err    error
}

// newReadBack starts to read the file. The parameter `there` is the number of bytes that the file
// already has; it is 0 unless the caller continues an existing file. The reader reads these bytes
// first.
func newReadBack(ctx context.Context, files platform.Files, path string, there int64, file platform.WriteFile) (
	*readBack, error) {
	reader, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	r := &readBack{
		WriteFile: file, ctx: ctx, reader: reader,
		wrote: make(chan int, readBehind), ended: make(chan struct{}), sum: sha256.New(),
	}
	go r.run(there)
	return r, nil
}

func (r *readBack) run(there int64) {
	defer close(r.ended)
	buffer := make([]byte, readChunk)
	r.read(there, buffer)
	for n := range r.wrote {
		r.read(int64(n), buffer)
	}
	r.err = errors.Join(r.err, r.reader.Close())
}

func (r *readBack) read(n int64, buffer []byte) {
	for n > 0 && r.err == nil {
		part := buffer[:min(n, int64(len(buffer)))]
		if r.err = r.ctx.Err(); r.err == nil {
			_, r.err = io.ReadFull(r.reader, part)
		}
		if r.err == nil {
			r.sum.Write(part)
			r.size += int64(len(part))
			n -= int64(len(part))
		}
	}
}

func (r *readBack) Write(p []byte) (int, error) {
	n, err := r.WriteFile.Write(p)
	if n > 0 {
		r.wrote <- n
	}
	return n, err
}

// Close closes the file and waits for the reader.
func (r *readBack) Close() error {
	err := r.WriteFile.Close()
	close(r.wrote)
	<-r.ended
	return errors.Join(err, r.err)
}

// hash returns the hash and size of the file on the disk; call it after Close.
func (r *readBack) hash() (sha string, size int64) {
	return hex.EncodeToString(r.sum.Sum(nil)), r.size
}
