package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/swdt-dev/swdt/internal/host"
)

// readBehind bounds how many writes the reader may be behind the writer.
const readBehind = 32

// readBack reads a file again while it is being written, right behind the writer,
// and hashes what it reads: when the last byte is written the hash is nearly
// there, and nobody waits for all of it to be read once more. Nobody else can
// write the file before it is closed (host.WriteFile), so that what was read of it
// early is what is there in the end. It is a host.WriteFile itself.
type readBack struct {
	host.WriteFile
	ctx    context.Context
	reader io.ReadSeekCloser
	wrote  chan int // sizes of writes
	ended  chan struct{}
	sum    hash.Hash
	size   int64
	err    error
}

// newReadBack begins with the bytes that are there already, in a file that is
// continued.
func newReadBack(ctx context.Context, files host.Files, path string, there int64, file host.WriteFile) (*readBack, error) {
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

// hash is what is on the disk; known after Close.
func (r *readBack) hash() (sha string, size int64) {
	return hex.EncodeToString(r.sum.Sum(nil)), r.size
}
