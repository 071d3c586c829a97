package artifact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"

	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// got describes the source of a component after it was fetched: a file or folder on this machine.
type got struct {
	from    string // for people
	folder  string // the folder, if the source is a folder; otherwise empty, and binary is set
	url     place
	binary  source.Binary
	archive bool // binary is a .tar.gz
}

// get obtains the file, archive or folder of a wish.
func (s *Store) get(ctx context.Context, w Wish, r ui.Reporter) (got, error) {
	if w.Source == "" {
		where, err := w.published()
		if err != nil {
			return got{}, err
		}
		return s.find(ctx, w, where, r)
	}
	if !source.IsLocal(w.Source) {
		return s.find(ctx, w, published{url: w.Source}, r)
	}
	path, _, err := source.Request{URL: w.Source}.LocalPath()
	if err != nil {
		return got{}, fmt.Errorf("%s: %w", w.field(), err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return got{}, &AbsentError{Field: w.field(), What: path + " does not exist"}
	case err != nil:
		return got{}, fmt.Errorf("%s: %w", w.field(), err)
	case info.IsDir() && w.SHA256 != "":
		return got{}, fmt.Errorf("%s: %s is a folder, but sha256 belongs to a file: remove sha256", w.field(), path)
	case info.IsDir():
		return got{from: path, folder: path}, nil
	}
	return s.obtain(ctx, place(path), w.SHA256, r)
}

// find looks for a file in its places: at its URL, or in the mirror.
func (s *Store) find(ctx context.Context, w Wish, where published, r ui.Reporter) (got, error) {
	candidates, err := places(where.url, w.Mirror)
	if err != nil {
		return got{}, fmt.Errorf("%s: %w", w.field(), err)
	}
	// Files in the cache come first: they need no request.
	slices.SortStableFunc(candidates, func(a, b place) int {
		return cmp.Compare(s.rank(w, a, where.checksum), s.rank(w, b, where.checksum))
	})
	missing := &MissingError{What: w.description(), Mirror: w.Mirror != "", Field: w.field()}
	for _, candidate := range candidates {
		found, err := s.verified(ctx, w, candidate, where.checksum, r)
		var none *notThere
		if !errors.As(err, &none) {
			return found, err
		}
		missing.Looked, missing.Err = append(missing.Looked, none.Error()), none.err
	}
	return got{}, missing
}

// rank returns 0 if the file of the place is in the cache and its checksum is known, otherwise
// 1.
func (s *Store) rank(w Wish, at place, ending string) int {
	if _, ok := s.remembered(w, at.withSuffix(ending)); ok {
		return 0
	}
	return 1
}

// verified gets a file from a place, and verifies it if the wish or the place has a checksum.
func (s *Store) verified(ctx context.Context, w Wish, at place, ending string, r ui.Reporter) (found got, err error) {
	switch {
	case w.SHA256 != "":
		return s.obtain(ctx, at, w.SHA256, r)
	case ending == "": // a user's own source, which may have no checksum
		found, err = s.obtain(ctx, at, "", r)
	case at.local():
		return s.besideLocal(ctx, at, ending, r)
	default:
		found, err = s.besideRemote(ctx, w, at, ending, r)
	}
	if err == nil && at.plain() {
		r.Warn("%s came over plain http, where every host on the way can change it, and a checksum beside it as well: "+
			"use https, or a folder as the mirror", at)
	}
	return found, err
}

// besideLocal gets a file from a mirror that is a folder. Without a checksum, the file is
// used with a warning.
func (s *Store) besideLocal(ctx context.Context, at place, ending string, r ui.Reporter) (got, error) {
	if _, err := os.Stat(string(at)); errors.Is(err, fs.ErrNotExist) {
		return got{}, &notThere{at: at}
	}
	want, err := s.checksum(ctx, at, ending, r)
	var none *notThere
	if errors.As(err, &none) {
		r.Warn("%s has no checksum beside it (%s): it is used unverified", at, none.at)
	} else if err != nil {
		return got{}, err
	}
	return s.published(ctx, at, ending, want, r)
}

// besideRemote gets a published file from a server. The server must also have the file's checksum.
func (s *Store) besideRemote(ctx context.Context, w Wish, at place, ending string, r ui.Reporter) (got, error) {
	if want, ok := s.remembered(w, at.withSuffix(ending)); ok {
		return s.published(ctx, at, ending, want, r) // from the cache
	}
	want, err := s.checksum(ctx, at, ending, r)
	if err != nil {
		return got{}, err
	}
	found, err := s.published(ctx, at, ending, want, r)
	if err == nil {
		s.remember(w, at.withSuffix(ending), want)
	}
	return found, err
}

// published gets a file whose checksum is published beside the file.
func (s *Store) published(ctx context.Context, at place, ending, want string, r ui.Reporter) (got, error) {
	found, err := s.obtain(ctx, at, want, r)
	var mismatch *source.HashMismatchError
	if errors.As(err, &mismatch) {
		return got{}, &ChecksumError{File: at.String(), Got: mismatch.Got, Published: at.withSuffix(ending).String(),
			Want: want}
	}
	return found, err
}

// obtain gets the file at a place, and determines whether it is an archive.
func (s *Store) obtain(ctx context.Context, at place, want string, r ui.Reporter) (got, error) {
	binary, err := s.file(ctx, at, source.Request{SHA256: want}, r)
	if err != nil {
		return got{}, err
	}
	file, err := os.Open(binary.Path)
	if err != nil {
		return got{}, fmt.Errorf("read %s: %w", at, err)
	}
	defer file.Close()
	head := make([]byte, 2)
	if _, err := io.ReadFull(file, head); err != nil && !errors.Is(err, io.EOF) &&
		!errors.Is(err, io.ErrUnexpectedEOF) {
		return got{}, fmt.Errorf("read %s: %w", at, err)
	}
	return got{from: at.String(), url: at, binary: binary, archive: bytes.Equal(head, []byte{0x1f, 0x8b})}, nil
}

// file gets a file of any kind; a *notThere error means that it does not exist.
func (s *Store) file(ctx context.Context, at place, request source.Request, r ui.Reporter) (source.Binary, error) {
	request.URL = string(at)
	binary, err := s.sources.Obtain(ctx, request, r)
	var status *source.StatusError
	switch {
	case errors.Is(err, fs.ErrNotExist) && at.local():
		return source.Binary{}, &notThere{at: at}
	case errors.As(err, &status) && isMissing(status.Status):
		return source.Binary{}, &notThere{at: at, err: status}
	}
	return binary, err
}

// isMissing reports whether a status means that the file does not exist. Object stores that do
// not list their content answer 403.
func isMissing(status int) bool {
	return status == http.StatusNotFound || status == http.StatusGone || status == http.StatusForbidden
}

// notThere reports that a place does not have the file.
type notThere struct {
	at  place
	err *source.StatusError // the server's answer; nil if the place is on a disk
}

func (e *notThere) Error() string {
	if e.err == nil {
		return e.at.String()
	}
	return fmt.Sprintf("%s (%d %s)", e.at, e.err.Status, e.err.Text)
}
