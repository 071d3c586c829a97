package fleettest

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// FileServer serves binaries over HTTP.
type FileServer struct {
	URL string

	mutex sync.Mutex
	files map[string][]byte
}

// NewFileServer starts a server, which ends with the test.
func NewFileServer(t testing.TB, files map[string][]byte) *FileServer {
	d := &FileServer{files: files}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	d.URL = server.URL
	return d
}

// ServeHTTP implements http.Handler.
func (d *FileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mutex.Lock()
	content, ok := d.files[r.URL.Path[1:]]
	d.mutex.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}

// Add adds or replaces a file.
func (d *FileServer) Add(file string, content []byte) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.files[file] = content
}

// Content returns a content that brings one of the server's files to the nodes as their kubelet.
func (d *FileServer) Content(file string) fleetv1.Content {
	return ContentOf(d.URL+"/"+file, d.Sum(file))
}

// Sum returns the SHA-256 of one of the server's files.
func (d *FileServer) Sum(file string) string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	sum := sha256.Sum256(d.files[file])
	return hex.EncodeToString(sum[:])
}

// ContentOf returns a content that brings a kubelet to the nodes.
func ContentOf(url, sha256 string) fleetv1.Content {
	settle, timeout := fleetv1.Duration("20ms"), fleetv1.Duration("500ms")
	return fleetv1.Content{Provisioners: []fleetv1.Provisioner{{
		Name: "kubelet", SourceURL: url, SHA256: sha256,
		Destination: simulated.KubeletPath,
		Health:      &fleetv1.Health{Settle: &settle, Timeout: &timeout},
	}}}
}

// Kubelet returns a kubelet of a version, with this fault; "": none.
func Kubelet(version string, fault simulated.Fault) []byte {
	return simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: version, Fault: fault})
}
