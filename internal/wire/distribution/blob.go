package distribution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Blob names a blob of a repository.
type Blob struct {
	Digest string // sha256:…
	Size   int64  // bytes
}

// ReadBlob returns a small blob, which has the blob's digest. It reads no more than the blob's size, and fails if that is more
// than limit bytes.
func (r *Repository) ReadBlob(ctx context.Context, blob Blob, limit int64) ([]byte, error) {
	if !IsDigest(blob.Digest) || blob.Size < 0 {
		return nil, fmt.Errorf("read a blob: %q of %d bytes names none", blob.Digest, blob.Size)
	}
	if blob.Size > limit {
		return nil, fmt.Errorf("read blob %.19s… of %s: %w", blob.Digest, r.reference.Name(), &TooLargeError{Limit: limit})
	}
	response, err := r.get(ctx, "blobs/"+blob.Digest, http.Header{})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, &StatusError{Reference: r.reference, Blob: blob.Digest, Status: response.StatusCode}
	}
	content, err := readAll(response.Body, blob.Size)
	if err != nil {
		return nil, fmt.Errorf("read blob %.19s… of %s: %w", blob.Digest, r.reference.Name(), r.failed(ctx, err))
	}
	if got := DigestOf(content); got != blob.Digest {
		return nil, &MismatchError{Reference: r.reference, Want: blob.Digest, Got: got}
	}
	return content, nil
}

// partEnding is the end of the name of an unfinished file.
const partEnding = ".part"

// Download stores a blob in the file at path, and returns how many bytes it received from the
// registry. The file appears when it is complete and has the blob's digest; until then it is
// path.part, which a later Download continues if the registry allows it. No more than the blob's
// size is written. progress, which may be nil, is called with the number of bytes that arrived
// since the last call. Only the caller may write into the folder of path, and no two calls may
// have the same path at once.
func (r *Repository) Download(ctx context.Context, blob Blob, path string, progress func(int64)) (int64, error) {
	if !IsDigest(blob.Digest) || blob.Size < 0 {
		return 0, fmt.Errorf("download a blob: %q of %d bytes names none", blob.Digest, blob.Size)
	}
	if progress == nil {
		progress = func(int64) {}
	}
	d := &download{repository: r, blob: blob, part: path + partEnding, progress: progress}
	resumed, err := d.run(ctx)
	var mismatch *MismatchError
	if resumed && (errors.Is(err, errPartUseless) || errors.As(err, &mismatch)) {
		// The bytes of the earlier run were wrong, or the registry cannot continue them.
		_, err = d.run(ctx)
	}
	if err != nil {
		return d.received, err
	}
	if err := os.Rename(d.part, path); err != nil {
		return d.received, fmt.Errorf("keep a blob: %w", err)
	}
	return d.received, nil
}

// errPartUseless means that the registry cannot continue an unfinished file.
var errPartUseless = errors.New("the registry cannot continue the download")

// download is the download of one blob.
type download struct {
	repository *Repository
	blob       Blob
	part       string
	progress   func(int64)
	received   int64
}

// run downloads what the part lacks, and verifies the whole. Unless the part may be continued
// later, run removes it when it fails. resumed reports whether the part had bytes of an earlier run.
func (d *download) run(ctx context.Context) (resumed bool, err error) {
	file, err := os.OpenFile(d.part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, fmt.Errorf("write a blob: %w", err)
	}
	err = d.fill(ctx, file, &resumed)
	var mismatch *MismatchError
	useless := errors.Is(err, errPartUseless) || errors.As(err, &mismatch)
	if closing := file.Close(); err == nil && closing != nil {
		err = fmt.Errorf("write a blob: %w", closing)
	}
	if useless {
		if removing := os.Remove(d.part); removing != nil && !errors.Is(removing, fs.ErrNotExist) {
			return false, errors.Join(err, removing)
		}
	}
	return resumed, err
}

func (d *download) fill(ctx context.Context, file *os.File, resumed *bool) error {
	hash := sha256.New()
	have, err := io.Copy(hash, file) // also moves to the end of the file
	if err != nil {
		return fmt.Errorf("read an unfinished blob: %w", err)
	}
	*resumed = have > 0
	if have > d.blob.Size {
		return errPartUseless
	}
	if have < d.blob.Size {
		if err := d.receive(ctx, file, hash, have); err != nil {
			return err
		}
	}
	if got := "sha256:" + hex.EncodeToString(hash.Sum(nil)); got != d.blob.Digest {
		return &MismatchError{Reference: d.repository.reference, Want: d.blob.Digest, Got: got}
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("write a blob: %w", err)
	}
	return nil
}

// receive appends what the file lacks after its first have bytes.
func (d *download) receive(ctx context.Context, file *os.File, hash io.Writer, have int64) error {
	header := http.Header{}
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", have, d.blob.Size-1))
	}
	response, err := d.repository.get(ctx, "blobs/"+d.blob.Digest, header)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		if have > 0 { // the registry knows no ranges
			return errPartUseless
		}
	case http.StatusPartialContent:
		if start, ok := rangeStart(response.Header.Get("Content-Range")); !ok || have == 0 || start != have {
			return errPartUseless
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return errPartUseless
	default:
		return &StatusError{Reference: d.repository.reference, Blob: d.blob.Digest, Status: response.StatusCode}
	}
	d.progress(have)
	return d.copy(ctx, io.MultiWriter(file, hash), response.Body, have)
}

func (d *download) copy(ctx context.Context, w io.Writer, body io.Reader, have int64) error {
	want := d.blob.Size - have
	n, err := io.Copy(w, &countingReader{reader: io.LimitReader(body, want), count: d.progress})
	d.received += n
	var failed *readError
	switch {
	case errors.As(err, &failed):
		return d.cut(have+n, d.repository.failed(ctx, failed.err))
	case err != nil:
		return fmt.Errorf("write a blob: %w", err)
	case n < want:
		return d.cut(have+n, io.ErrUnexpectedEOF)
	}
	return nil
}

func (d *download) cut(got int64, err error) error {
	return &TruncatedError{Reference: d.repository.reference, Got: got, Want: d.blob.Size, Err: err}
}

// rangeStart returns the first position of a Content-Range header: 10 for "bytes 10-99/100".
func rangeStart(header string) (int64, bool) {
	rest, ok := strings.CutPrefix(header, "bytes ")
	first, _, dash := strings.Cut(rest, "-")
	if !ok || !dash {
		return 0, false
	}
	start, err := strconv.ParseInt(first, 10, 64)
	return start, err == nil
}

// countingReader reports the bytes that were read, and marks errors of reading.
type countingReader struct {
	reader io.Reader
	count  func(int64)
}

type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.reader.Read(p)
	if n > 0 {
		r.count(int64(n))
	}
	if err != nil && err != io.EOF {
		err = &readError{err}
	}
	return n, err
}
