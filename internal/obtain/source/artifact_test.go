package source_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/publish"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// published publishes content as kubelet under the tag dev, and returns the set's digest.
func published(t *testing.T, r *registrytest.Registry, content []byte) string {
	t.Helper()
	reference, err := distribution.ParseReference(r.Host + "/team/node:dev")
	if err != nil {
		t.Fatal(err)
	}
	store, err := blobs.Open(filepath.Join(t.TempDir(), "blobs"), 0)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubelet.exe")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := source.Obtain(t.Context(), source.Request{URL: path}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := publish.Publish(t.Context(), []publish.Component{{Name: "kubelet", Title: "kubelet.exe", Binary: binary}},
		publish.Options{Target: reference, Blobs: store}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	r.Requests()
	r.Sent()
	return report.Digest
}

func obtainKubelet(t *testing.T, set *source.Set, url, hash string) (source.Binary, error) {
	t.Helper()
	return set.Obtain(t.Context(), source.Request{URL: url, Component: "kubelet", SHA256: hash, Executable: true},
		ui.Discard{})
}

func mustObtainKubelet(t *testing.T, set *source.Set, url, hash string, want []byte) {
	t.Helper()
	binary, err := obtainKubelet(t, set, url, hash)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(binary.Path)
	if err != nil || string(content) != string(want) || binary.Machine != "amd64" {
		t.Fatalf("got %d bytes for %s, %v; want %d", len(content), binary.Machine, err, len(want))
	}
}

func TestABinaryOfARegistry(t *testing.T) {
	r, run, one := registrytest.Start(t), caches(t), incompressible(1)
	two := append(bytes.Clone(one), "one more line"...)
	tag := "oci://" + r.Host + "/team/node:dev"

	digest := published(t, r, one)
	mustObtainKubelet(t, run(), tag, "", one)
	r.Requests()
	mustObtainKubelet(t, run(), tag, "", one)
	if asked := r.Requests(); len(asked) != 1 || !strings.Contains(asked[0].URL.Path, "/manifests/") {
		t.Errorf("a tag whose binary is in the cache: %d requests", len(asked))
	}
	mustObtainKubelet(t, run(), tag, sum(one), one)
	if asked := r.Requests(); len(asked) != 0 {
		t.Errorf("a known hash: %d requests", len(asked))
	}

	published(t, r, two)
	mustObtainKubelet(t, run(), tag, "", two)
	if sent := r.Sent(); sent > 10_000 {
		t.Errorf("%d bytes were sent, and the cache has the base of the patch", sent)
	}
	mustObtainKubelet(t, run(), "oci://"+r.Host+"/team/node@"+digest, "", one)
}

func TestARegistrysBinaryMustHaveTheWantedHash(t *testing.T) {
	r := registrytest.Start(t)
	published(t, r, program("one"))
	_, err := obtainKubelet(t, caches(t)(), "oci://"+r.Host+"/team/node:dev", sum(program("two")))
	var wrong *binaryset.HashError
	if !errors.As(err, &wrong) || !source.Refused(err) {
		t.Errorf("the error is %v, want a %T that refuses for good", err, wrong)
	}
}

func TestARegistrysBinaryIsBounded(t *testing.T) {
	r := registrytest.Start(t)
	published(t, r, program("one"))
	set := source.NewSet(source.Options{Cache: t.TempDir(), Limits: source.Limits{Size: 1000}})
	_, err := obtainKubelet(t, set, "oci://"+r.Host+"/team/node:dev", "")
	var size *binaryset.SizeError
	if !errors.As(err, &size) {
		t.Errorf("the error is %v, want a %T", err, size)
	}
}

// The next run of swdt continues a layer of which the registry has sent only the beginning.
func TestACutDownloadFromARegistryIsContinued(t *testing.T) {
	r, run, one := registrytest.Start(t), caches(t), incompressible(1)
	published(t, r, one)
	tag := "oci://" + r.Host + "/team/node:dev"
	r.Intercept(func(w http.ResponseWriter, request *http.Request, next http.Handler) bool {
		if !strings.Contains(request.URL.Path, "/blobs/") {
			return false
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, request)
		_, _ = w.Write(answer.Body.Bytes()[:100_000])
		return true
	})
	_, err := obtainKubelet(t, run(), tag, "")
	var truncated *distribution.TruncatedError
	if !errors.As(err, &truncated) || truncated.Got != 100_000 || source.Refused(err) || source.Denied(err) {
		t.Fatalf("the error is %v, want a %T that another try may end", err, truncated)
	}
	r.Intercept(nil)
	r.Requests()
	mustObtainKubelet(t, run(), tag, "", one)
	if asked := r.Requests(); len(asked) != 2 || !strings.HasPrefix(asked[1].Header.Get("Range"), "bytes=100000-") {
		t.Errorf("requests: %v", asked)
	}
}

// incompressible returns a kubelet.exe of some size that compression and patches help little.
func incompressible(seed byte) []byte {
	content := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(content)
	return kubelet(string(content))
}

// A registry, another user of it, and a server on the way to it can refuse a binary for good, and nothing else: they fill
// no disk, and no other host gets the login.
func TestAHostileRegistryGainsNothing(t *testing.T) {
	elsewhere := registrytest.Start(t)
	other := append(incompressible(2), make([]byte, 1000)...) // more than the layer has
	at := func(kind string, answer http.HandlerFunc) registrytest.Hook {
		return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if strings.Contains(r.URL.Path, kind) {
				answer(w, r)
				return true
			}
			return false
		}
	}
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 1<<20))
		}
	}
	for name, hostile := range map[string]registrytest.Hook{
		"another binary":   at("/blobs/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(other) }),
		"an endless layer": at("/blobs/", endless),
		"another manifest": at("/manifests/", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"schemaVersion":2}`))
		}),
		"an endless manifest": at("/manifests/", endless),
		"a redirect to another binary": at("/blobs/", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere.Host+"/kubelet.exe", http.StatusTemporaryRedirect)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			r, one := registrytest.Start(t), incompressible(1)
			digest := published(t, r, one)
			r.RequireLogin("fleet", "s3cret")
			r.Intercept(hostile)
			elsewhere.Intercept(at("", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(other) }))
			cache := t.TempDir()
			set := source.NewSet(source.Options{Cache: cache, Credential: auth.StaticCredential(r.Host,
				auth.Credential{Username: "fleet", Password: "s3cret"})})
			_, err := obtainKubelet(t, set, "oci://"+r.Host+"/team/node@"+digest, sum(one))
			if !source.Refused(err) {
				t.Errorf("the error is %v, a %T, which does not refuse for good", err, err)
			}
			if bytes := sizeBelow(t, cache); bytes > 1<<20 {
				t.Errorf("the cache has %d bytes", bytes)
			}
			for _, request := range elsewhere.Requests() {
				if request.Header.Get("Authorization") != "" || request.Header.Get("Referer") != "" {
					t.Errorf("the other host got %v", request.Header)
				}
			}
		})
	}
}

func sizeBelow(t *testing.T, folder string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
