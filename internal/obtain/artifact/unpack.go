package artifact

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// limits are the maximum unpacked sizes, in bytes, of one file of an archive and of all its files
// together. They are many times the sizes of real archives.
type limits struct{ file, total int64 }

const remedyArchive = "download it again, or name another source"

// unpack extracts a component's programs from an archive into the cache, which names files
// by their hashes.
func (s *Store) unpack(ctx context.Context, w Wish, g got, r ui.Reporter) ([]File, error) {
	store, err := s.blobs()
	if err != nil {
		return nil, err
	}
	content, err := s.content(ctx, store, w, g, r)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, name := range w.programs() {
		hash, ok := content[name]
		if !ok {
			continue
		}
		blob, err := store.Path(ctx, hash)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", g.from, err)
		}
		file, err := s.program(ctx, w, name, blob, hash, g.from, r)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// content returns the hash of each program in an archive, by the program's name. When it returns,
// the cache has all of these programs. content also stores the hashes, so that the next run need
// not unpack. Only one swdt at a time unpacks an archive: a file that another swdt is reading must
// not be replaced.
func (s *Store) content(ctx context.Context, store *blobs.Store, w Wish, g got,
	r ui.Reporter) (map[string]string, error) {
	index, err := s.cached("archives", g.binary.SHA256+"-"+string(w.Component)+".json")
	if err != nil {
		return nil, err
	}
	release, err := source.Lock(ctx, index+".lock", func() {
		r.Step("waiting for another swdt that unpacks %s", g.from)
	})
	if err != nil {
		return nil, err
	}
	defer release()
	if content, ok := cachedPrograms(ctx, store, index); ok {
		return content, nil
	}
	r.Step("unpacking %s", g.from)
	content, err := extract(ctx, store, g, w.programs(), s.limits)
	if err != nil {
		return nil, err
	}
	if err := g.binary.Unchanged(); err != nil {
		return nil, err
	}
	if text, err := json.Marshal(content); err == nil {
		_ = localfile.Replace(index, text) // if this fails, the next run unpacks the archive again
	}
	return content, nil
}

// cachedPrograms returns an archive's programs by name, if all of them are in the cache.
func cachedPrograms(ctx context.Context, store *blobs.Store, index string) (map[string]string, bool) {
	text, err := os.ReadFile(index)
	if err != nil {
		return nil, false
	}
	var content map[string]string
	if json.Unmarshal(text, &content) != nil || len(content) == 0 {
		return nil, false
	}
	for _, hash := range content {
		if _, err := store.Path(ctx, hash); err != nil {
			return nil, false
		}
	}
	return content, true
}

// extract stores the wanted files of an archive, and returns their hashes by name. It never
// writes to a path that the archive names.
func extract(ctx context.Context, store *blobs.Store, g got, wanted []string, most limits) (map[string]string, error) {
	file, err := os.Open(g.binary.Path)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", g.from, err)
	}
	defer file.Close()
	content, err := extractFrom(ctx, store, file, wanted, most)
	var disk *diskError
	var archive *ArchiveError
	switch {
	case err == nil && content[wanted[0]] != "":
		return content, nil
	case err == nil:
		return nil, &ArchiveError{Archive: g.from, What: "has no " + wanted[0],
			Remedy: "name the archive of a release for Windows"}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &disk):
		return nil, fmt.Errorf("unpack %s into the cache: %w", g.from, disk.err)
	case errors.As(err, &archive):
		archive.Archive, archive.Remedy = g.from, remedyArchive
		return nil, archive
	}
	return nil, &ArchiveError{Archive: g.from, What: "is not a whole .tar.gz", Err: err, Remedy: remedyArchive}
}

func extractFrom(ctx context.Context, store *blobs.Store, file io.Reader, wanted []string,
	most limits) (map[string]string, error) {
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	bounded := &boundedReader{ctx: ctx, r: unzipped, left: most.total}
	archive := tar.NewReader(bounded)
	content := map[string]string{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// Read the rest of the archive, so that gzip verifies the checksum at the end.
			_, err = io.Copy(io.Discard, bounded)
			return content, err
		}
		if err != nil {
			return nil, err
		}
		name := path.Base(slashed(header.Name))
		if header.Typeflag == tar.TypeDir || !slices.Contains(wanted, name) {
			continue
		}
		if what := unfit(header, content[name] != "", most.file); what != "" {
			return nil, &ArchiveError{What: what}
		}
		if content[name], err = keep(ctx, store, archive); err != nil {
			return nil, err
		}
	}
}

// unfit returns the reason why a file of an archive must not be extracted; "" if it may be.
func unfit(header *tar.Header, twice bool, most int64) string {
	switch {
	case header.Typeflag != tar.TypeReg:
		return fmt.Sprintf("has %.200q, which is no regular file", header.Name)
	case slices.Contains(strings.Split(slashed(header.Name), "/"), ".."):
		return fmt.Sprintf("has %.200q, which leads outside of it", header.Name)
	case twice:
		return fmt.Sprintf("has %s twice", path.Base(slashed(header.Name)))
	case header.Size > most:
		return fmt.Sprintf("has %.200q of %d bytes, more than the %d that are unpacked", header.Name, header.Size, most)
	}
	return ""
}

func slashed(name string) string { return strings.ReplaceAll(name, `\`, "/") }

type diskError struct{ err error }

func (e *diskError) Error() string { return e.err.Error() }

// keep writes a file into the store under the hash of its content.
func keep(ctx context.Context, store *blobs.Store, content io.Reader) (string, error) {
	// if the temporary file stays, the store removes it later
	temporary, err := os.CreateTemp(store.Folder(), "unpacked-*.new")
	if err != nil {
		return "", &diskError{err}
	}
	sum := sha256.New()
	_, err = io.Copy(&diskWriter{io.MultiWriter(temporary, sum)}, content)
	if closeErr := temporary.Close(); err == nil && closeErr != nil {
		err = &diskError{closeErr}
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	if err != nil {
		_ = os.Remove(temporary.Name())
		return "", err
	}
	if _, err := store.Path(ctx, hash); err == nil { // the store has the file already; another swdt may be using it
		_ = os.Remove(temporary.Name())
		return hash, nil
	}
	if _, err := store.Adopt(ctx, temporary.Name(), hash); err != nil {
		_ = os.Remove(temporary.Name())
		return "", &diskError{err}
	}
	return hash, nil
}

// diskWriter marks failed writes, to distinguish them from failed reads.
type diskWriter struct{ w io.Writer }

func (w *diskWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		err = &diskError{err}
	}
	return n, err
}

// boundedReader ends a read when ctx ends, or at the limit.
type boundedReader struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

var errTooLarge = errors.New("it unpacks to more than is ever needed")

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.r.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
