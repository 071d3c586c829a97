package source_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/obtain/source"
)

func cutDownload(t *testing.T, s *server, set *source.Set, at int) {
	t.Helper()
	s.set(func(s *server) { s.cut = at })
	_, err := obtain(t, set, s.url(), "")
	var truncated *source.TruncatedError
	switch {
	case !errors.As(err, &truncated):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, truncated)
	case truncated.Got != int64(at):
		t.Fatalf("truncated.Got is %v, want %v", truncated.Got, int64(at))
	case source.Refused(err) || source.Denied(err):
		t.Fatalf("a cut counts as the answer of the server: %v", err)
	case truncated.Want != int64(len(s.content)):
		t.Fatalf("truncated.Want is %v, want %v", truncated.Want, int64(len(s.content)))
	}
	if strings.Contains(err.Error(), "secret") {
		t.Fatalf("the query is in the error: %v", err)
	}
	s.set(func(s *server) { s.cut = 0 })
	s.asked()
}

func TestACutDownloadIsContinued(t *testing.T) {
	run, one := caches(t), program("one")
	s := serve(t, one)
	cutDownload(t, s, run(), 100_000)
	mustObtain(t, run(), s.url(), "", one)
	asked := s.asked()
	switch {
	case len(asked) != 1:
		t.Fatalf("asked has %d elements, want 1: %v", len(asked), asked)
	case asked[0].Header.Get("Range") != "bytes=100000-":
		t.Fatalf(`asked[0].Header.Get("Range") is %q, want %q`, asked[0].Header.Get("Range"), "bytes=100000-")
	case asked[0].Header.Get("If-Range") != `"one"`:
		t.Fatalf(`asked[0].Header.Get("If-Range") is %q, want %q`, asked[0].Header.Get("If-Range"), `"one"`)
	}
}

func TestADownloadThatChangedInTheMiddleBeginsAnew(t *testing.T) {
	run := caches(t)
	s := serve(t, program("one"))
	cutDownload(t, s, run(), 100_000)
	two := program("two")
	s.set(func(s *server) { s.content, s.etag = two, `"two"` })
	mustObtain(t, run(), s.url(), "", two)
}

func TestWithoutAStrongValidatorNothingIsContinued(t *testing.T) {
	for _, etag := range []string{"", `W/"one"`} {
		run, one := caches(t), program("one")
		s := serve(t, one)
		s.etag = etag
		cutDownload(t, s, run(), 100_000)
		mustObtain(t, run(), s.url(), "", one)
		if asked := s.asked(); len(asked) != 1 || asked[0].Header.Get("Range") != "" {
			t.Fatalf("etag %q: continued with %v", etag, asked[0].Header)
		}
	}
}

func TestAServerThatContinuesElsewhereIsNotBelieved(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"another place": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", "bytes 5-9/10")
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, "wrong")
		},
		"not satisfiable": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		},
	} {
		t.Run(name, func(t *testing.T) {
			run, one := caches(t), program("one")
			s := serve(t, one)
			cutDownload(t, s, run(), 100_000)
			s.set(func(s *server) {
				s.first = func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Range") != "" {
						answer(w, r)
						return
					}
					http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(one))
				}
			})
			mustObtain(t, run(), s.url(), "", one)
			if len(s.asked()) != 2 {
				t.Fatal("the part was not tried first")
			}
		})
	}
}

func TestAPartFilledWithOtherBytesFailsTheHashAndIsForgotten(t *testing.T) {
	folder, one := t.TempDir(), program("one")
	run := func() *source.Set { return source.NewSet(source.Options{Cache: folder}) }
	s := serve(t, one)
	cutDownload(t, s, run(), 100_000)
	parts, err := filepath.Glob(filepath.Join(folder, "urls", "*.part"))
	switch {
	case err != nil:
		t.Fatal(err)
	case len(parts) != 1:
		t.Fatalf("parts has %d elements, want 1: %v", len(parts), parts)
	}
	if err := os.WriteFile(parts[0], make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = obtain(t, run(), s.url(), sum(one))
	var mismatch *source.HashMismatchError
	if !errors.As(err, &mismatch) {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, mismatch)
	}
	mustObtain(t, run(), s.url(), sum(one), one)
}
