package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/pe"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// program returns a small Windows executable with the given text in it.
func program(machine uint16, text string) []byte {
	const headers = 0x200
	var b bytes.Buffer
	dos := make([]byte, 0x40)
	copy(dos, "MZ")
	binary.LittleEndian.PutUint32(dos[0x3c:], 0x40)
	b.Write(dos)
	b.WriteString("PE\x00\x00")
	optional := pe.OptionalHeader64{Magic: 0x20b, NumberOfRvaAndSizes: 16}
	err := errors.Join(
		binary.Write(&b, binary.LittleEndian, pe.FileHeader{
			Machine: machine, NumberOfSections: 1, Characteristics: pe.IMAGE_FILE_EXECUTABLE_IMAGE,
			SizeOfOptionalHeader: uint16(binary.Size(optional)),
		}),
		binary.Write(&b, binary.LittleEndian, optional),
		binary.Write(&b, binary.LittleEndian, pe.SectionHeader32{
			Name: [8]uint8{'.', 't', 'e', 'x', 't'}, VirtualAddress: 0x1000,
			VirtualSize: uint32(len(text)), SizeOfRawData: uint32(len(text)), PointerToRawData: headers,
		}))
	if err != nil {
		panic(err) // a bug in the test
	}
	b.Write(make([]byte, headers-b.Len()))
	b.WriteString(text)
	return b.Bytes()
}

func amd64(text string) []byte { return program(pe.IMAGE_FILE_MACHINE_AMD64, text) }

func arm64(text string) []byte { return program(pe.IMAGE_FILE_MACHINE_ARM64, text) }

func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

// archived is a file of an archive: a regular file, unless its header differs.
type archived struct {
	tar.Header
	content []byte
}

func file(name string, content []byte) archived {
	return archived{tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o755}, content}
}

func targz(t *testing.T, files ...archived) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for _, f := range files {
		if err := archive.WriteHeader(&f.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// release returns an archive like those that containerd publishes.
func release(t *testing.T, text string) []byte {
	return targz(t,
		archived{Header: tar.Header{Name: "bin/", Typeflag: tar.TypeDir}},
		file("bin/containerd-shim-runhcs-v1.exe", amd64("shim "+text)),
		file("bin/containerd-stress.exe", amd64("stress "+text)),
		file("bin/containerd.exe", amd64("containerd "+text)),
		file("bin/ctr.exe", amd64("ctr "+text)))
}

// internet replaces all hosts, as a client's transport: it has files by host and path.
type internet struct {
	server *httptest.Server

	mutex sync.Mutex
	files map[string][]byte
	asked []string
}

func connect(t *testing.T) *internet {
	i := &internet{files: map[string][]byte{}}
	i.server = httptest.NewServer(i)
	t.Cleanup(i.server.Close)
	return i
}

// RoundTrip sends each request to the one server, for any host.
func (i *internet) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Host", r.URL.Host)
	to, err := url.Parse(i.server.URL)
	if err != nil {
		return nil, err
	}
	r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
	return i.server.Client().Transport.RoundTrip(r)
}

func (i *internet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := r.Header.Get("X-Host") + r.URL.Path
	i.mutex.Lock()
	i.asked = append(i.asked, at)
	content, ok := i.files[at]
	i.mutex.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"`+sum(content)+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func (i *internet) put(at string, content []byte) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.files[at] = content
}

// requests returns the requests since the last call.
func (i *internet) requests() []string {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	asked := i.asked
	i.asked = nil
	return asked
}

const (
	kubelet1363    = "dl.k8s.io/v1.36.3/bin/windows/amd64/kubelet.exe"
	containerd1712 = "github.com/containerd/containerd/releases/download/v1.7.12/containerd-1.7.12-windows-amd64.tar.gz"
)

// publish returns an internet with a kubelet and a containerd.
func publish(t *testing.T) *internet {
	i := connect(t)
	kubelet, containerd := amd64("kubelet"), release(t, "1.7.12")
	i.put(kubelet1363, kubelet)
	i.put(kubelet1363+".sha256", []byte(sum(kubelet)))
	i.put(containerd1712, containerd)
	i.put(containerd1712+".sha256sum", []byte(sum(containerd)+"  containerd-1.7.12-windows-amd64.tar.gz\n"))
	return i
}

// runs returns a function that makes Stores which share a cache, like runs of swdt.
func runs(t *testing.T, i *internet) func() *artifact.Store {
	cache := t.TempDir()
	return func() *artifact.Store {
		return artifact.NewStore(source.Options{Cache: cache, HTTP: &http.Client{Transport: i},
			Limits: source.Limits{Stall: 10 * time.Second}})
	}
}

// heard is a Reporter that records warnings.
type heard struct {
	ui.Discard
	mutex    sync.Mutex
	warnings []string
}

func (h *heard) Warn(format string, args ...any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.warnings = append(h.warnings, fmt.Sprintf(format, args...))
}

func (h *heard) text() string { return strings.Join(h.warnings, "\n") }

// expect resolves a wish and checks that the result has these files with this content.
func expect(t *testing.T, store *artifact.Store, wish artifact.Wish, want map[string][]byte) (artifact.Set, *heard) {
	t.Helper()
	story := &heard{}
	set, err := store.Resolve(t.Context(), wish, story)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range set.Files {
		names = append(names, f.Name)
		got, err := os.ReadFile(f.Path)
		switch {
		case err != nil:
			t.Errorf("%s: got another file: %v", f.Name, err)
		case !bytes.Equal(got, want[f.Name]):
			t.Errorf("%s: got another file: got differs from want[f.Name]", f.Name)
		case f.SHA256 != sum(got):
			t.Errorf("%s: got another file: f.SHA256 is %v, want %v", f.Name, f.SHA256, sum(got))
		case f.Size != int64(len(got)):
			t.Errorf("%s: got another file: f.Size is %v, want %v", f.Name, f.Size, int64(len(got)))
		case f.Machine == "":
			t.Errorf("%s: got another file: f.Machine is empty", f.Name)
		}
	}
	if len(names) != len(want) || names[0] != string(wish.Component)+".exe" {
		t.Errorf("got %v, want %d files, %s.exe first", names, len(want), wish.Component)
	}
	return set, story
}

// refuse resolves a wish and checks that the error contains these words.
func refuse(t *testing.T, store *artifact.Store, wish artifact.Wish, words ...string) error {
	t.Helper()
	set, err := store.Resolve(t.Context(), wish, ui.Discard{})
	if err == nil {
		t.Fatalf("got %+v, want an error with %q", set, words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q: %v", word, err)
		}
	}
	return err
}

// write puts files below a folder.
func write(t *testing.T, folder string, files map[string][]byte) string {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
