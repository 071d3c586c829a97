package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// server serves one file like a real server; a test may handle requests before it.
type server struct {
	*httptest.Server

	mutex    sync.Mutex
	content  []byte
	etag     string
	cut      int // number of bytes of the body after which the connection breaks; 0: never
	requests []*http.Request
	first    http.HandlerFunc // may answer a request itself; nil: none
}

func serve(t *testing.T, content []byte) *server {
	s := &server{content: content, etag: `"one"`}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.requests = append(s.requests, r)
	content, etag, cut, first := s.content, s.etag, s.cut, s.first
	s.mutex.Unlock()
	if first != nil {
		first(w, r)
		return
	}
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	if cut > 0 {
		w = &cutWriter{ResponseWriter: w, left: cut}
	}
	http.ServeContent(w, r, "kubelet.exe", time.Time{}, bytes.NewReader(content))
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	if _, err := w.ResponseWriter.Write(p[:n]); err != nil {
		return 0, err
	}
	if w.left == 0 {
		w.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

func (s *server) set(change func(*server)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(s)
}

func (s *server) asked() []*http.Request {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	asked := s.requests
	s.requests = nil
	return asked
}

func (s *server) url() string { return s.URL + "/v1/kubelet.exe?token=secret" }

// program returns a kubelet.exe of some size that depends on seed.
func program(seed string) []byte { return kubelet(strings.Repeat(seed, 300_000/len(seed))) }

// caches returns a function that makes Sets which share a cache, like runs of swdt.
func caches(t *testing.T) func() *source.Set {
	folder := t.TempDir()
	return func() *source.Set {
		return source.NewSet(source.Options{Cache: folder, Limits: source.Limits{Stall: 5 * time.Second}})
	}
}

func obtain(t *testing.T, set *source.Set, url, hash string) (source.Binary, error) {
	t.Helper()
	return set.Obtain(t.Context(), source.Request{URL: url, SHA256: hash, Executable: true}, ui.Discard{})
}

func mustObtain(t *testing.T, set *source.Set, url, hash string, content []byte) source.Binary {
	t.Helper()
	binary, err := obtain(t, set, url, hash)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(binary.Path)
	switch {
	case err != nil:
		t.Fatal(err)
	case !bytes.Equal(got, content):
		t.Fatal("got differs from content")
	case binary.SHA256 != sum(content):
		t.Fatalf("binary.SHA256 is %v, want %v", binary.SHA256, sum(content))
	}
	return binary
}

func TestDownloadOnceThenAskWhetherItChanged(t *testing.T) {
	run, one := caches(t), program("one")
	s := serve(t, one)
	set := run()
	first := mustObtain(t, set, s.url(), "", one)
	if again := mustObtain(t, set, s.url(), "", one); again != first || len(s.asked()) != 1 {
		t.Fatal("one run asked twice")
	}
	mustObtain(t, run(), s.url(), "", one)
	if asked := s.asked(); len(asked) != 1 || asked[0].Header.Get("If-None-Match") != `"one"` {
		t.Fatalf("the next run sent %d requests", len(asked))
	}
	two := program("two")
	s.set(func(s *server) { s.content, s.etag = two, `"two"` })
	mustObtain(t, run(), s.url(), "", two)
}

func TestAKnownHashNeedsNoRequest(t *testing.T) {
	run, one := caches(t), program("one")
	s := serve(t, one)
	mustObtain(t, run(), s.url(), sum(one), one)
	s.asked()
	mustObtain(t, run(), s.URL+"/elsewhere", sum(one), one)
	if len(s.asked()) != 0 {
		t.Fatal("asked for what is in the cache")
	}
}

func TestADamagedBlobIsDownloadedAgain(t *testing.T) {
	run, one := caches(t), program("one")
	s := serve(t, one)
	binary := mustObtain(t, run(), s.url(), "", one)
	if err := os.WriteFile(binary.Path, []byte("bit rot"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustObtain(t, run(), s.url(), "", one)
	if err := os.WriteFile(binary.Path, []byte("bit rot"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustObtain(t, run(), s.url(), sum(one), one)
}

// The cache may remove a file while the Set that downloaded it lives on.
func TestAFileThatLeftTheCacheIsDownloadedAgain(t *testing.T) {
	one := program("one")
	s := serve(t, one)
	set := caches(t)()
	for range 2 {
		binary := mustObtain(t, set, s.url(), sum(one), one)
		if n := len(s.asked()); n != 1 {
			t.Fatalf("%d requests, want 1", n)
		}
		if err := os.Remove(binary.Path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAWrongHashIsNotKept(t *testing.T) {
	run := caches(t)
	s := serve(t, program("one"))
	_, err := obtain(t, run(), s.url(), strings.Repeat("00", 32))
	var mismatch *source.HashMismatchError
	switch {
	case !errors.As(err, &mismatch) || !source.Refused(err):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, mismatch)
	case strings.Contains(err.Error(), "secret"):
		t.Fatalf("err.Error() contains %q:\n%s", "secret", err.Error())
	}
	s.asked()
	mustObtain(t, run(), s.url(), "", program("one"))
	if asked := s.asked(); len(asked) != 1 || asked[0].Header.Get("Range") != "" {
		t.Fatal("went on with what was refused")
	}
}

func TestStatuses(t *testing.T) {
	for status, want := range map[int]string{
		404: "404 Not Found: correct sourceURL", 403: "wants credentials", 500: "try again later", 304: "304",
	} {
		s := serve(t, nil)
		s.first = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }
		_, err := obtain(t, caches(t)(), s.url(), "")
		var answered *source.StatusError
		switch {
		case !errors.As(err, &answered):
			t.Errorf("%d: the error is %v, a %T, want a %T", status, err, err, answered)
		case answered.Status != status:
			t.Errorf("%d: answered.Status is %v, want %v", status, answered.Status, status)
		case source.Denied(err) != (status == 404 || status == 403) || source.Refused(err):
			t.Errorf("%d: denied: %t, refused: %t", status, source.Denied(err), source.Refused(err))
		case !strings.Contains(err.Error(), want):
			t.Errorf("%d: err.Error() lacks %q:\n%s", status, want, err.Error())
		case strings.Contains(err.Error(), "secret"):
			t.Errorf("%d: err.Error() contains %q:\n%s", status, "secret", err.Error())
		}
	}
}

func TestRedirects(t *testing.T) {
	run, one := caches(t), program("one")
	s := serve(t, one)
	from := httptest.NewServer(http.RedirectHandler(s.url(), http.StatusFound))
	defer from.Close()
	mustObtain(t, run(), from.URL+"/latest", "", one)

	var circle *httptest.Server
	circle = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, circle.URL+"/again", http.StatusFound)
	}))
	defer circle.Close()
	switch _, err := obtain(t, run(), circle.URL, ""); {
	case err == nil:
		t.Fatal("no error, want one")
	case !strings.Contains(err.Error(), "more than 10 redirects"):
		t.Fatalf("err.Error() lacks %q:\n%s", "more than 10 redirects", err.Error())
	}
}

func TestAnErrorPageIsNamedAsOne(t *testing.T) {
	s := serve(t, []byte("<!doctype html><title>Sign in</title>"))
	_, err := obtain(t, caches(t)(), s.url(), "")
	var bad *source.NotExecutableError
	switch {
	case !errors.As(err, &bad):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, bad)
	case !strings.Contains(err.Error(), "web page"):
		t.Fatalf("err.Error() lacks %q:\n%s", "web page", err.Error())
	case strings.Contains(err.Error(), "secret"):
		t.Fatalf("err.Error() contains %q:\n%s", "secret", err.Error())
	}
}

func TestDownloadFromAClosedPortFails(t *testing.T) {
	s := serve(t, nil)
	s.Close()
	_, err := obtain(t, caches(t)(), s.url(), "")
	switch {
	case err == nil:
		t.Fatal("no error, want one")
	case !strings.Contains(err.Error(), "check the URL, the network and the proxy"):
		t.Fatalf("err.Error() lacks %q:\n%s", "check the URL, the network and the proxy", err.Error())
	case strings.Contains(err.Error(), "secret"):
		t.Fatalf("err.Error() contains %q:\n%s", "secret", err.Error())
	}
}

// begins answers with the beginning of a file and then sends nothing more.
func begins(reached chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("ETag", `"one"`)
		fmt.Fprint(w, "MZ")
		w.(http.Flusher).Flush()
		reached <- struct{}{}
		<-r.Context().Done()
	}
}

func TestADownloadThatStandsStillEnds(t *testing.T) {
	s := serve(t, nil)
	s.first = begins(make(chan struct{}, 1))
	// Stall counts from before the connection, which takes a while on a busy machine.
	set := source.NewSet(source.Options{Cache: t.TempDir(), Limits: source.Limits{Stall: 2 * time.Second}})
	_, err := obtain(t, set, s.url(), "")
	var truncated *source.TruncatedError
	switch {
	case !errors.As(err, &truncated):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, truncated)
	case truncated.Got != 2:
		t.Fatalf("truncated.Got is %v, want 2", truncated.Got)
	case !strings.Contains(err.Error(), "no data arrived"):
		t.Fatalf("err.Error() lacks %q:\n%s", "no data arrived", err.Error())
	}
}

func TestCancelledDownload(t *testing.T) {
	s, reached := serve(t, nil), make(chan struct{}, 1)
	s.first = begins(reached)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reached
		cancel()
	}()
	_, err := caches(t)().Obtain(ctx, source.Request{URL: s.url()}, ui.Discard{})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v, want %v", err, context.Canceled)
	}
}

func TestSeveralRunsAtOnceDownloadOnce(t *testing.T) {
	run, one := caches(t), program("one")
	s := serve(t, one)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			binary, err := run().Obtain(t.Context(), source.Request{URL: s.url()}, ui.Discard{})
			switch {
			case err != nil:
				t.Error(err)
			case binary.SHA256 != sum(one):
				t.Errorf("binary.SHA256 is %v, want %v", binary.SHA256, sum(one))
			}
		})
	}
	all.Wait()
	full := 0
	for _, r := range s.asked() {
		if r.Header.Get("If-None-Match") == "" {
			full++
		}
	}
	if full != 1 {
		t.Errorf("downloaded %d times", full)
	}
}

func TestOneSetAsksOnceForManyNodes(t *testing.T) {
	one := program("one")
	s := serve(t, one)
	set := caches(t)()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := set.Obtain(t.Context(), source.Request{URL: s.url()}, ui.Discard{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(s.asked()); n != 1 {
		t.Errorf("%d requests", n)
	}
}
