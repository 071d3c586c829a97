package distribution_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

func randomBytes(n int) []byte {
	content := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(content)
	return content
}

// stored is a blob in a registry, and the repository that has it.
type stored struct {
	registry   *registrytest.Registry
	repository *distribution.Repository
	content    []byte
	blob       distribution.Blob
	path       string
}

func store(t *testing.T, o distribution.Options) *stored {
	t.Helper()
	r := registrytest.Start(t)
	content := randomBytes(300_000)
	digest := r.PutBlob(t, "team/node", content)
	reference, err := distribution.ParseReference(r.Host + "/team/node:v1")
	if err != nil {
		t.Fatal(err)
	}
	return &stored{r, distribution.Open(reference, o), content,
		distribution.Blob{Digest: digest, Size: int64(len(content))}, filepath.Join(t.TempDir(), "blob")}
}

func (s *stored) download(t *testing.T) (int64, error) {
	t.Helper()
	return s.repository.Download(t.Context(), s.blob, s.path, nil)
}

func (s *stored) mustDownload(t *testing.T) int64 {
	t.Helper()
	received, err := s.download(t)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(s.path)
	if err != nil || !bytes.Equal(got, s.content) {
		t.Fatalf("the file has %d bytes, %v; want the blob's %d", len(got), err, len(s.content))
	}
	return received
}

// mustNotExist fails if a refused download left a file.
func (s *stored) mustNotExist(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(s.path); err == nil {
		t.Error("the file exists")
	}
}

func TestABlobIsDownloaded(t *testing.T) {
	s := store(t, distribution.Options{})
	if received := s.mustDownload(t); received != int64(len(s.content)) {
		t.Errorf("received %d bytes, want %d", received, len(s.content))
	}
}

// cut makes the registry end each answer after n bytes.
func cut(n int) registrytest.Hook {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		w.Header().Set("Content-Length", fmt.Sprint(answer.Body.Len()))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:n])
		return true
	}
}

func (s *stored) cutDownload(t *testing.T, at int) {
	t.Helper()
	s.registry.Intercept(cut(at))
	_, err := s.download(t)
	var truncated *distribution.TruncatedError
	if !errors.As(err, &truncated) || truncated.Got != int64(at) {
		t.Fatalf("the error is %v, want a %T after %d bytes", err, truncated, at)
	}
	s.mustNotExist(t)
	s.registry.Intercept(nil)
	s.registry.Requests()
}

func TestACutDownloadIsContinued(t *testing.T) {
	s := store(t, distribution.Options{})
	s.cutDownload(t, 100_000)
	if received := s.mustDownload(t); received != 200_000 {
		t.Errorf("received %d bytes, want 200,000", received)
	}
	if asked := s.registry.Requests(); len(asked) != 1 || asked[0].Header.Get("Range") != "bytes=100000-299999" {
		t.Errorf("requests: %v", asked)
	}
}

func TestWithoutRangesADownloadBeginsAnew(t *testing.T) {
	for name, hook := range map[string]registrytest.Hook{
		"ranges are ignored": func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			r.Header.Del("Range")
			return false
		},
		"another place": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Header.Get("Range") == "" {
				return false
			}
			w.Header().Set("Content-Range", "bytes 5-9/10")
			w.WriteHeader(http.StatusPartialContent)
			return true
		},
		"not satisfiable": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Header.Get("Range") == "" {
				return false
			}
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := store(t, distribution.Options{})
			s.cutDownload(t, 100_000)
			s.registry.Intercept(hook)
			s.mustDownload(t)
		})
	}
}

func TestAPartWithOtherBytesIsForgotten(t *testing.T) {
	s := store(t, distribution.Options{})
	for _, size := range []int{100, 300_000, 400_000} {
		if err := os.WriteFile(s.path+".part", make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		s.mustDownload(t)
	}
}

// A hostile registry may send what it likes.
func TestOtherContentIsRefused(t *testing.T) {
	answer := func(content []byte) registrytest.Hook {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			_, _ = w.Write(content)
			return true
		}
	}
	t.Run("other bytes", func(t *testing.T) {
		s := store(t, distribution.Options{})
		s.registry.Intercept(answer(make([]byte, len(s.content))))
		_, err := s.download(t)
		var mismatch *distribution.MismatchError
		if !errors.As(err, &mismatch) {
			t.Errorf("the error is %v, want a %T", err, mismatch)
		}
		s.mustNotExist(t)
	})
	t.Run("more bytes", func(t *testing.T) {
		s := store(t, distribution.Options{})
		s.registry.Intercept(answer(append(bytes.Clone(s.content), make([]byte, 10<<20)...)))
		if received := s.mustDownload(t); received != int64(len(s.content)) {
			t.Errorf("received %d bytes, want %d", received, len(s.content))
		}
	})
	t.Run("fewer bytes", func(t *testing.T) {
		s := store(t, distribution.Options{})
		s.registry.Intercept(answer(s.content[:10]))
		_, err := s.download(t)
		var truncated *distribution.TruncatedError
		if !errors.As(err, &truncated) {
			t.Errorf("the error is %v, want a %T", err, truncated)
		}
		s.mustNotExist(t)
	})
}

func TestManifest(t *testing.T) {
	r := registrytest.Start(t)
	content := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[]}`)
	digest := r.PutManifest(t, "team/node", "v1", content)
	tag, err := distribution.ParseReference("oci://" + r.Host + "/team/node:v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []distribution.Reference{tag, tag.WithDigest(digest)} {
		got, of, err := distribution.Open(reference, distribution.Options{}).Manifest(t.Context())
		if err != nil || !bytes.Equal(got, content) || of != digest {
			t.Errorf("%s: got %s %q, %v", reference, of, got, err)
		}
	}
	_, _, err = distribution.Open(tag.WithTag("missing"), distribution.Options{}).Manifest(t.Context())
	if !distribution.NotFound(err) {
		t.Errorf("a missing tag: %v", err)
	}

	serve := func(content []byte) {
		r.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			_, _ = w.Write(content)
			return true
		})
	}
	serve([]byte("{}"))
	_, _, err = distribution.Open(tag.WithDigest(digest), distribution.Options{}).Manifest(t.Context())
	var mismatch *distribution.MismatchError
	if !errors.As(err, &mismatch) {
		t.Errorf("another manifest than that of the digest: %v", err)
	}
	serve(make([]byte, 2<<20))
	_, _, err = distribution.Open(tag, distribution.Options{}).Manifest(t.Context())
	var large *distribution.TooLargeError
	if !errors.As(err, &large) {
		t.Errorf("a manifest of 2 MiB: %v", err)
	}
}

const secret = "s3cret-passw0rd"

func login(context.Context, string) (auth.Credential, error) {
	return auth.Credential{Username: "ci", Password: secret}, nil
}

func TestALoginIsUsedAndNotShown(t *testing.T) {
	s := store(t, distribution.Options{Credential: login})
	s.registry.RequireLogin("ci", secret)
	s.mustDownload(t)

	s.registry.RequireLogin("ci", "another password")
	_, err := s.download(t)
	var status *distribution.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusUnauthorized || strings.Contains(err.Error(), secret) {
		t.Errorf("with a wrong password: %v", err)
	}
	anonymous := distribution.Open(s.repository.Reference(), distribution.Options{})
	_, err = anonymous.Download(t.Context(), s.blob, s.path, nil)
	if !errors.As(err, &status) || status.Status != http.StatusUnauthorized {
		t.Errorf("without a login: %v", err)
	}
}

// A registry redirects blobs to a store of its provider. The store must not see the login, and a
// hostile registry must gain nothing by a redirect.
func TestARedirectCarriesNoLogin(t *testing.T) {
	s := store(t, distribution.Options{Credential: login})
	s.registry.RequireLogin("ci", secret)
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization")+r.Header.Get("Referer"))
		_, _ = w.Write(s.content)
	}))
	t.Cleanup(other.Close)
	s.registry.Intercept(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		http.Redirect(w, r, other.URL+"/store?token=signed", http.StatusTemporaryRedirect)
		return true
	})
	s.mustDownload(t)
	if len(seen) != 1 || seen[0] != "" {
		t.Errorf("the other server saw %q", seen)
	}
}

func TestNoRedirectLeavesTLS(t *testing.T) {
	r := registrytest.StartTLS(t)
	content := randomBytes(1000)
	blob := distribution.Blob{Digest: r.PutBlob(t, "team/node", content), Size: 1000}
	asked := false
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(plain.Close)
	r.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		http.Redirect(w, request, plain.URL+"/blob?token=signed", http.StatusFound)
		return true
	})
	reference := distribution.Reference{Registry: r.Host, Repository: "team/node", Tag: "v1"}
	repository := distribution.Open(reference, distribution.Options{HTTP: r.Client()})
	_, err := repository.Download(t.Context(), blob, filepath.Join(t.TempDir(), "blob"), nil)
	var redirect *distribution.RedirectError
	if !errors.As(err, &redirect) || asked || strings.Contains(err.Error(), "signed") {
		t.Errorf("the error is %v, want a %T without the address; the plain server was asked: %t", err, redirect, asked)
	}
}

// A hostile registry names a token server, to which the client would send the login.
func TestALoginIsNotSentToAPlainTokenServer(t *testing.T) {
	r := registrytest.StartTLS(t)
	asked := false
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(thief.Close)
	r.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, thief.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	reference := distribution.Reference{Registry: r.Host, Repository: "team/node", Tag: "v1"}
	_, _, err := distribution.Open(reference, distribution.Options{HTTP: r.Client(), Credential: login}).Manifest(t.Context())
	if err == nil || asked || strings.Contains(err.Error(), secret) {
		t.Errorf("the error is %v; the token server was asked: %t", err, asked)
	}
}

func TestATokenIsFetchedFromTheRegistrysServer(t *testing.T) {
	s := store(t, distribution.Options{Credential: login})
	s.registry.Intercept(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		user, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && user == "ci" && password == secret:
			fmt.Fprint(w, `{"token":"granted"}`)
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusForbidden)
		case r.Header.Get("Authorization") == "Bearer granted":
			return false
		default:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, r.Host))
			w.WriteHeader(http.StatusUnauthorized)
		}
		return true
	})
	s.mustDownload(t)
}

// A registry without TLS names a token server that only this machine reaches: its answer would be sent to the
// registry, as a token.
func TestARegistryWithoutTLSNamesNoOtherTokenServer(t *testing.T) {
	const internal = "http://internal.test/latest/credentials"
	for name, test := range map[string]struct {
		challenge string // a registry's own answer to /token redirects to internal
		allowed   bool
	}{
		"another server":             {`Bearer realm="` + internal + `",service="x"`, false},
		"after another parameter":    {`bearer service="x" , realm="` + internal + `"`, false},
		"twice":                      {`Bearer realm="http://registry.test/granted",realm="` + internal + `"`, false},
		"with escapes":               {`Bearer realm="http:\x2f/internal.test/latest/credentials"`, false},
		"no address":                 {`Bearer realm="http://internal.test:x/"`, false},
		"a redirect from its own":    {`Bearer realm="http://registry.test/moved"`, false},
		"a redirect from its API":    {`Bearer realm="http://registry.test/v2/moved"`, false},
		"its own":                    {`Bearer realm="http://registry.test/granted",service="x",scope="a:b:pull,push"`, true},
		"its own, at another port":   {`Bearer realm="http://registry.test:5001/granted",service=x`, true},
		"one with TLS":               {`Bearer realm="https://tokens.test/granted"`, true},
		"its own, which redirects":   {`Bearer realm="http://registry.test/within"`, true},
		"its own, which turns safer": {`Bearer realm="http://registry.test/safer"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Host == "internal.test":
					asked = r.URL.String()
					fmt.Fprintf(w, `{"token":%q}`, secret)
				case strings.HasSuffix(r.URL.Path, "/moved"):
					http.Redirect(w, r, internal, http.StatusTemporaryRedirect)
				case r.URL.Path == "/within":
					http.Redirect(w, r, "/granted", http.StatusTemporaryRedirect)
				case r.URL.Path == "/safer":
					http.Redirect(w, r, "https://tokens.test/granted", http.StatusTemporaryRedirect)
				case r.URL.Path == "/granted":
					fmt.Fprint(w, `{"token":"granted"}`)
				case r.Header.Get("Authorization") == "Bearer granted":
					fmt.Fprint(w, `{}`)
				default:
					w.Header().Set("WWW-Authenticate", test.challenge)
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			plain, safe := httptest.NewServer(serve), httptest.NewTLSServer(serve)
			t.Cleanup(plain.Close)
			t.Cleanup(safe.Close)
			transport := safe.Client().Transport.(*http.Transport).Clone()
			transport.TLSClientConfig.InsecureSkipVerify = true
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				server := plain
				if strings.HasSuffix(address, ":443") {
					server = safe
				}
				return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
			}
			reference := distribution.Reference{Registry: "registry.test", Repository: "team/node", Tag: "v1", PlainHTTP: true}
			options := distribution.Options{HTTP: &http.Client{Transport: transport}, Credential: login}
			_, _, err := distribution.Open(reference, options).Manifest(t.Context())
			refused, is := errors.AsType[*distribution.TokenServerError](err)
			if is == test.allowed || asked != "" {
				t.Errorf("the error is %v; the other server was asked: %q", err, asked)
			}
			if is && (refused.Registry != "registry.test" || strings.Contains(err.Error(), secret)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestParseReference(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]distribution.Reference{
		"ghcr.io/team/node:v1":           {Registry: "ghcr.io", Repository: "team/node", Tag: "v1"},
		"oci://ghcr.io/team/node":        {Registry: "ghcr.io", Repository: "team/node", Tag: "latest"},
		"oci://ghcr.io/node@" + digest:   {Registry: "ghcr.io", Repository: "node", Digest: digest},
		"OCI://ghcr.io/n:v@" + digest:    {Registry: "ghcr.io", Repository: "n", Digest: digest},
		"localhost:5000/node:v1":         {Registry: "localhost:5000", Repository: "node", Tag: "v1", PlainHTTP: true},
		"oci://127.0.0.1:5000/node":      {Registry: "127.0.0.1:5000", Repository: "node", Tag: "latest", PlainHTTP: true},
		"oci+http://registry:5000/n:1.0": {Registry: "registry:5000", Repository: "n", Tag: "1.0", PlainHTTP: true},
	} {
		got, err := distribution.ParseReference(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
		if again, err := distribution.ParseReference(got.String()); err != nil || again != got {
			t.Errorf("%s: %s is read as %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "node", "https://ghcr.io/node:v1", "oci://", "oci://ghcr.io", "oci:///node",
		"ghcr.io/Node:v1", "ghcr.io/../node:v1", "ghcr.io/node:v 1", "ghcr.io/node@sha256:0a", "ghcr.io/node@" +
			strings.ToUpper(digest), "ghcr.io/node@sha512:" + strings.Repeat("0a", 64), "ghcr.io/node:v1?x=y",
		"user:" + secret + "@ghcr.io/node:v1", "ghcr.io/node:v1\n"} {
		_, err := distribution.ParseReference(text)
		var wrong *distribution.ReferenceError
		if !errors.As(err, &wrong) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error is %v, want a %T", text, err, wrong)
		}
	}
}

// Tags reads page after page, and ends whatever the registry sends.
func TestTags(t *testing.T) {
	r := registrytest.Start(t)
	content := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[]}`)
	for _, tag := range []string{"a", "b"} {
		r.PutManifest(t, "team/node", tag, content)
	}
	reference, err := distribution.ParseReference(r.Host + "/team/node")
	if err != nil {
		t.Fatal(err)
	}
	repository := distribution.Open(reference, distribution.Options{})
	if got, more, err := repository.Tags(t.Context()); err != nil || more || strings.Join(got, " ") != "a b" {
		t.Errorf("%q, %v", got, err)
	}
	page := func(first int) string {
		tags := make([]string, 1000)
		for i := range tags {
			tags[i] = fmt.Sprintf("t%08d", first+i)
		}
		text, err := json.Marshal(map[string]any{"tags": tags})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	asked := 0
	answer := func(next func(last string) string) {
		asked = 0
		r.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			asked++
			_, _ = w.Write([]byte(next(request.URL.Query().Get("last"))))
			return true
		})
	}
	answer(func(last string) string {
		if last == "" {
			return page(0)
		}
		return `{"tags":["z","no tag","../x","-y"]}`
	})
	if got, more, err := repository.Tags(t.Context()); err != nil || more || len(got) != 1001 || got[1000] != "z" || asked != 2 {
		t.Errorf("%d tags, %d requests, %v", len(got), asked, err)
	}
	answer(func(string) string { return page(asked * 1000) })
	if got, more, err := repository.Tags(t.Context()); err != nil || !more || len(got) != 20_000 || asked != 21 {
		t.Errorf("without an end: %d tags, more %v, %d requests, %v", len(got), more, asked, err)
	}
	answer(func(string) string { return page(0) })
	if got, more, err := repository.Tags(t.Context()); err != nil || more || len(got) != 1000 || asked != 2 {
		t.Errorf("the same page again: %d tags, more %v, %d requests, %v", len(got), more, asked, err)
	}
	answer(func(string) string { return "<html>" + secret })
	if _, _, err := repository.Tags(t.Context()); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("no JSON: %v", err)
	}
	answer(func(string) string { return strings.Repeat(" ", 2<<20) })
	if _, _, err := repository.Tags(t.Context()); !errors.As(err, new(*distribution.TooLargeError)) {
		t.Errorf("2 MiB: %v", err)
	}
}

// A registry may send fewer tags than are asked for if it names the next page in a header Link, as section "Listing Tags" of
// the distribution specification 1.1 has it:
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md.
func TestTagsOfARegistryThatCapsItsPages(t *testing.T) {
	r := registrytest.Start(t)
	reference, err := distribution.ParseReference(r.Host + "/team/node")
	if err != nil {
		t.Fatal(err)
	}
	repository := distribution.Open(reference, distribution.Options{})
	tags := make([]string, 250)
	for i := range tags {
		tags[i] = fmt.Sprintf("t%04d", i)
	}
	next := `</v2/team/node/tags/list?n=100&last=t0099>; rel="next"`
	asked := 0
	// capped answers with 100 tags after the last one, of those that the registry shows.
	capped := func(shown []string, after func(last string) string) {
		asked = 0
		r.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			if asked++; asked > 1000 {
				t.Error("the registry is asked without end")
				return false
			}
			begin, _ := slices.BinarySearch(shown, after(request.URL.Query().Get("last"))+"!")
			page := shown[begin:min(begin+100, len(shown))]
			if begin+100 < len(shown) {
				w.Header().Add("Link", `</first>; rel="first"`)
				w.Header().Add("Link", next)
			}
			if err := json.NewEncoder(w).Encode(map[string]any{"tags": page}); err != nil {
				t.Error(err)
			}
			return true
		})
	}
	obeyed := func(last string) string { return last }
	for _, next = range []string{next, "<https://thief.test/x>; title=a; rel=next", `</a>; rel="prev", </b>; REL="Next"`} {
		capped(tags, obeyed)
		if got, more, err := repository.Tags(t.Context()); err != nil || more || !slices.Equal(got, tags) || asked != 3 {
			t.Errorf("%s: %d tags, more %v, %d requests, %v", next, len(got), more, asked, err)
		}
	}
	// A registry that does not know "last" shows its first page only, and swdt reports that there are more.
	capped(tags, func(string) string { return "" })
	if got, more, err := repository.Tags(t.Context()); err != nil || !more || !slices.Equal(got, tags[:100]) || asked != 2 {
		t.Errorf("last is ignored: %d tags, more %v, %d requests, %v", len(got), more, asked, err)
	}
	// A registry that names a next page without end.
	r.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		asked++
		w.Header().Set("Link", next)
		page := make([]string, 200)
		for i := range page {
			page[i] = fmt.Sprintf("%sx%d-%d", strings.Repeat("/", i%2), asked, i) // each second one is no tag
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"tags": page}); err != nil {
			t.Error(err)
		}
		return true
	})
	asked = 0
	if got, more, err := repository.Tags(t.Context()); err != nil || !more || len(got) != 10_000 || asked != 101 {
		t.Errorf("without end: %d tags, more %v, %d requests, %v", len(got), more, asked, err)
	}
	// A page without tags ends the list.
	r.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		asked++
		w.Header().Set("Link", next)
		_, _ = w.Write([]byte(`{"tags":null}`))
		return true
	})
	asked = 0
	if got, more, err := repository.Tags(t.Context()); err != nil || !more || len(got) != 0 || asked != 1 {
		t.Errorf("an empty page: %d tags, more %v, %d requests, %v", len(got), more, asked, err)
	}
}

// The names are those of github.com/distribution/reference v0.6.0, ParseDockerRef.
func TestParseImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"nginx":                            "docker.io/library/nginx:latest",
		"hello-world:nanoserver":           "docker.io/library/hello-world:nanoserver",
		"sigwindowstools/kube-proxy:v1":    "docker.io/sigwindowstools/kube-proxy:v1",
		"docker.io/nginx":                  "docker.io/library/nginx:latest",
		"index.docker.io/nginx:1":          "docker.io/library/nginx:1",
		"docker.io/calico/node:v3":         "docker.io/calico/node:v3",
		"mcr.microsoft.com/x/y:z":          "mcr.microsoft.com/x/y:z",
		"localhost/app:1":                  "localhost/app:1",
		"localhost:5000/app":               "localhost:5000/app:latest",
		"team/app@" + digest:               "docker.io/team/app@" + digest,
		"registry.example/app:1@" + digest: "registry.example/app@" + digest,
	} {
		if got, err := distribution.ParseImage(text); err != nil || got.Name() != want {
			t.Errorf("%s: %s, %v; want %s", text, got.Name(), err, want)
		}
	}
	for _, text := range []string{"", "Nginx", "a b", "oci://ghcr.io/a:b", "registry.example/", "nginx:", "-x", "user:" + secret + "@ghcr.io/a:b"} {
		if got, err := distribution.ParseImage(text); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q is %s, %v", text, got.Name(), err)
		}
	}
}

func TestPullSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".dockerconfigjson")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"auths":{"registry.example:5000":{"username":"ci","password":"` + secret + `"}}}`)
	credential, err := distribution.PullSecret(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := credential(t.Context(), "registry.example:5000")
	if err != nil || got.Username != "ci" || got.Password != secret {
		t.Errorf("the login is %v of user %q", err, got.Username)
	}
	if other, err := credential(t.Context(), "elsewhere.example"); err != nil || other != auth.EmptyCredential {
		t.Errorf("another registry gets a login, or %v", err)
	}
	write(`{"auths":{"x":{"auth":"` + secret)
	if _, err := distribution.PullSecret(path); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a damaged pull secret: %v", err)
	}
}
