// Package proxytest publishes a module for tests, as `go install` finds it: a module proxy on loopback, and a
// checksum database that vouches for the module.
package proxytest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/sumdb/note"
	modzip "golang.org/x/mod/zip"
)

// Module is a published module. The proxy ends with the test.
type Module struct {
	Sum string // of the zip that the checksum database vouches for: h1:…
	zip atomic.Pointer[[]byte]
	// Environ are settings of Go: the proxy, the database, and empty folders for its modules.
	Environ []string
}

// Publish publishes the files of a folder. sums returns the lines of go.sum for the version of another module, or an
// error; nil: there are no others.
func Publish(t testing.TB, m module.Version, folder string, sums func(path, version string) ([]byte, error)) *Module {
	t.Helper()
	p := &Module{}
	zip := Zip(t, m, folder)
	p.Send(zip)
	goMod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	check(t, err)
	goModSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(goMod)), nil
	})
	check(t, err)
	file := filepath.Join(t.TempDir(), "module.zip")
	check(t, os.WriteFile(file, zip, 0o600))
	p.Sum, err = dirhash.HashZip(file, dirhash.Hash1)
	check(t, err)
	private, public, err := note.GenerateKey(rand.Reader, "sums.swdt.test")
	check(t, err)
	database := sumdb.NewServer(sumdb.NewTestServer(private, func(path, version string) ([]byte, error) {
		switch {
		case path == m.Path && version == m.Version:
			return fmt.Appendf(nil, "%s %s %s\n%s %s/go.mod %s\n", path, version, p.Sum, path, version, goModSum), nil
		case sums != nil:
			return sums(path, version)
		}
		return nil, fs.ErrNotExist
	}))
	mux := http.NewServeMux()
	for _, path := range sumdb.ServerPaths {
		mux.Handle(path, database)
	}
	for file, content := range map[string]func() []byte{
		"list":              func() []byte { return []byte(m.Version + "\n") },
		m.Version + ".info": func() []byte { return fmt.Appendf(nil, `{"Version":%q}`, m.Version) },
		m.Version + ".mod":  func() []byte { return goMod },
		m.Version + ".zip":  func() []byte { return *p.zip.Load() },
	} {
		mux.HandleFunc("/"+m.Path+"/@v/"+file, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content()) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.Environ = []string{"GOENV=off", "GOFLAGS=", "GOPROXY=" + server.URL, "GOSUMDB=" + public + " " + server.URL}
	for name, folder := range map[string]string{"GOMODCACHE": t.TempDir(), "GOPATH": t.TempDir()} {
		p.Environ = append(p.Environ, name+"="+folder)
		t.Cleanup(func() { makeWritable(folder) })
	}
	return p
}

// Send makes the proxy send another zip than the one that the checksum database vouches for.
func (m *Module) Send(zip []byte) { m.zip.Store(&zip) }

// Zip returns the zip of a module with the files of a folder.
func Zip(t testing.TB, m module.Version, folder string) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, modzip.CreateFromDir(&b, m, folder))
	return b.Bytes()
}

// makeWritable lets the test remove modules, which Go makes without the permission to write.
func makeWritable(folder string) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
