package binaryset

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/swdt-dev/swdt/internal/wire/delta"
)

// maxWindow is the largest window of zstd, in bytes, that a layer may need. A publisher compresses
// with a window of at most this size.
const maxWindow = 8 << 20

// write gives the binary its name once the content that the given function writes has the
// binary's size and hash. If it has not, the error is a *ContentError.
func (f *fetch) write(ctx context.Context, content func(io.Writer) error) error {
	unfinished := f.result.Path + ".new"
	file, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.binary.Title, err)
	}
	hash := sha256.New()
	limited := &limitedWriter{io.MultiWriter(file, hash), f.binary.Size}
	err = content(limited)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, errTooLong) || err == nil && limited.left > 0:
		err = &ContentError{Title: f.binary.Title, What: "does not have the size that its manifest says", Err: err}
	case err == nil && hex.EncodeToString(hash.Sum(nil)) != f.binary.SHA256:
		err = &ContentError{Title: f.binary.Title, What: "does not have the hash that its manifest says"}
	case err == nil:
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(unfinished, f.result.Path)
	}
	if err != nil {
		_ = os.Remove(unfinished) // a later Fetch writes it anew
	}
	return err
}

// decompress writes the content of a layer that is compressed with zstd. Its memory is bounded,
// whatever the layer claims.
func (f *fetch) decompress(layer string, w io.Writer) error {
	file, err := os.Open(layer)
	if err != nil {
		return fmt.Errorf("read a layer: %w", err)
	}
	defer file.Close()
	decoder, err := zstd.NewReader(bufio.NewReaderSize(file, 256<<10), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return fmt.Errorf("decompress %s: %w", f.binary.Title, err)
	}
	defer decoder.Close()
	_, err = decoder.WriteTo(w)
	return f.damaged(err)
}

// applyPatch writes the binary that a patch makes from the file at base.
func (f *fetch) applyPatch(ctx context.Context, p Patch, base, layer string, w io.Writer) error {
	old, err := os.Open(base)
	if err != nil {
		return &ContentError{Title: f.binary.Title, What: "has no base for its patch", Err: err}
	}
	defer old.Close()
	patch, err := os.Open(layer)
	if err != nil {
		return fmt.Errorf("read a patch: %w", err)
	}
	defer patch.Close()
	info, err := old.Stat()
	if err != nil {
		return fmt.Errorf("read the base of a patch: %w", err)
	}
	header, err := delta.ReadHeader(patch)
	if err != nil {
		return f.damaged(err)
	}
	if hex.EncodeToString(header.OldSHA256[:]) != p.Base || header.OldSize != info.Size() ||
		hex.EncodeToString(header.NewSHA256[:]) != f.binary.SHA256 || header.NewSize != f.binary.Size {
		return &ContentError{Title: f.binary.Title, What: "has a patch for other files"}
	}
	if _, err := patch.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read a patch: %w", err)
	}
	// write compares the hash of the result.
	_, err = delta.Make(ctx, old, info.Size(), bufio.NewReader(patch), w)
	return f.damaged(err)
}

// damaged returns the error for content that cannot be unpacked. A failed write is not the
// content's fault.
func (f *fetch) damaged(err error) error {
	var local *os.PathError
	if err == nil || errors.As(err, &local) || errors.Is(err, errTooLong) {
		return err
	}
	return &ContentError{Title: f.binary.Title, What: fmt.Sprintf("has a damaged layer (%v)", err), Err: err}
}

// copyFile writes the file at path, which should have size bytes.
func copyFile(ctx context.Context, path string, w io.Writer, size int64) error {
	file, err := os.Open(path)
	if err != nil {
		return &ContentError{Title: path, What: "cannot be read", Err: err}
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() != size {
		return &ContentError{Title: path, What: "has another size", Err: err}
	}
	_, err = io.Copy(w, &contextReader{ctx, file})
	return err
}

// contextReader ends a long read when ctx ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

var errTooLong = errors.New("the content is longer than its manifest says")

// limitedWriter fails with errTooLong before more than left bytes are written.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, errTooLong
	}
	n, err := l.w.Write(p)
	l.left -= int64(n)
	return n, err
}
