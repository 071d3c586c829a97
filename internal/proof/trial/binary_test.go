package trial_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/proof/trial"
	"github.com/swdt-dev/swdt/internal/proof/verdict"
)

// published returns the tarball of tests that Kubernetes publishes, with the stand-in as its e2e.test.
func published(t *testing.T, binary string) []byte {
	t.Helper()
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for name, content := range map[string][]byte{"kubernetes/test/bin/ginkgo": []byte("another program"),
		"kubernetes/test/bin/e2e.test": program, "kubernetes/version": []byte("v1.36.3")} {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// mirror serves the tarball and a checksum beside it, and counts the requests for the tarball.
func mirror(t *testing.T, tarball []byte, checksum string) (url string, requests *int) {
	t.Helper()
	requests = new(int)
	file := "/dl.k8s.io/v1.36.3/kubernetes-test-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		switch r.URL.Path {
		case file:
			*requests++
			_, err = w.Write(tarball)
		case file + ".sha256":
			_, err = w.Write([]byte(checksum))
		default:
			http.NotFound(w, r)
		}
		if err != nil {
			t.Log(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func TestTheProgramOfTheClustersVersionIsDownloadedOnce(t *testing.T) {
	b := newBench(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	tarball := published(t, b.options.Source.Path)
	sum := sha256.Sum256(tarball)
	url, requests := mirror(t, tarball, hex.EncodeToString(sum[:]))
	for range 2 {
		r, err := b.run(t.Context(), t, "should pass", func(o *trial.Options) { o.Source = trial.Source{Mirror: url} })
		if err != nil || r.Result != verdict.AllPassed || r.Binary.Version != "v1.36.3" {
			t.Fatalf("%v, %+v", err, r)
		}
		want := filepath.Join("swdt", "e2e", "v1.36.3", "e2e.test")
		if !strings.HasSuffix(r.Binary.Path, want) {
			t.Errorf("%s was run, want …/%s", r.Binary.Path, want)
		}
	}
	if *requests != 1 {
		t.Errorf("%d downloads, want 1", *requests)
	}
}

func TestAProgramThatDiffersFromItsChecksumIsNotRun(t *testing.T) {
	b := newBench(t)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	url, _ := mirror(t, published(t, b.options.Source.Path), strings.Repeat("0", 64))
	r, err := b.run(t.Context(), t, "should pass", func(o *trial.Options) { o.Source = trial.Source{Mirror: url} })
	var wrong *artifact.ChecksumError
	if !errors.As(err, &wrong) || r.Folder != "" {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := os.Stat(filepath.Join(cache, "swdt", "e2e", "v1.36.3", "e2e.test")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the program was kept: %v", err)
	}
}

func TestABuildNeedsACheckout(t *testing.T) {
	_, err := newBench(t).run(t.Context(), t, "should pass", func(o *trial.Options) {
		o.Source = trial.Source{Build: t.TempDir()}
	})
	if err == nil || !strings.Contains(err.Error(), "is no checkout of Kubernetes") {
		t.Errorf("%v", err)
	}
}

// A checkout is built as Kubernetes' developers do it; this one has a Makefile that only copies.
func TestACheckoutIsBuilt(t *testing.T) {
	b := newBench(t)
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "test", "e2e"), 0o700); err != nil {
		t.Fatal(err)
	}
	makefile := "all:\n\t@test $(WHAT) = test/e2e/e2e.test && mkdir -p _output/bin && cp " + b.options.Source.Path +
		" _output/bin/e2e.test\n"
	for name, text := range map[string]string{"Makefile": makefile, "test/e2e/e2e_test.go": "package e2e\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.run(t.Context(), t, "should pass", func(o *trial.Options) { o.Source = trial.Source{Build: folder} })
	if err != nil || !strings.HasPrefix(r.Binary.Path, folder) {
		t.Errorf("%v, %+v", err, r.Binary)
	}
}
