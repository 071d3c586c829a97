// Package registrytest is an OCI registry for tests. It is the registry of go-containerregistry,
// in memory or with its blobs on disk, and on a port of loopback, with counters, logins, and a hook for a test that plays a
// hostile registry.
package registrytest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is a running registry. It ends with the test.
type Registry struct {
	Host string // host:port

	server *httptest.Server
	inner  http.Handler

	mutex    sync.Mutex
	hook     Hook
	user     string
	password string
	requests []*http.Request
	sent     int64
}

// Hook answers a request in place of the registry, if it returns true. next is the registry.
type Hook func(w http.ResponseWriter, r *http.Request, next http.Handler) bool

// Start starts a registry without TLS.
func Start(t testing.TB) *Registry {
	t.Helper()
	r := newRegistry()
	r.server = httptest.NewServer(r)
	return r.started(t)
}

// StartOnDisk starts a registry without TLS that keeps its blobs in a folder.
func StartOnDisk(t testing.TB, folder string) *Registry {
	t.Helper()
	r := newRegistry(registry.WithBlobHandler(registry.NewDiskBlobHandler(folder)))
	r.server = httptest.NewServer(r)
	return r.started(t)
}

// StartTLS starts a registry with TLS. Client trusts its certificate.
func StartTLS(t testing.TB) *Registry {
	t.Helper()
	r := newRegistry()
	r.server = httptest.NewTLSServer(r)
	return r.started(t)
}

func newRegistry(options ...registry.Option) *Registry {
	return &Registry{inner: registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...)}
}

func (r *Registry) started(t testing.TB) *Registry {
	t.Helper()
	t.Cleanup(r.server.Close)
	address, err := url.Parse(r.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = address.Host
	return r
}

// Client returns a client that trusts the registry's certificate.
func (r *Registry) Client() *http.Client { return r.server.Client() }

// Intercept sets the hook; nil removes it.
func (r *Registry) Intercept(hook Hook) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.hook = hook
}

// RequireLogin makes the registry demand a login (Basic).
func (r *Registry) RequireLogin(user, password string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.user, r.password = user, password
}

// Requests returns the requests since the last call.
func (r *Registry) Requests() []*http.Request {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	requests := slices.Clone(r.requests)
	r.requests = nil
	return requests
}

// Sent returns how many bytes of bodies the registry sent since the last call.
func (r *Registry) Sent() int64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	sent := r.sent
	r.sent = 0
	return sent
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mutex.Lock()
	hook, user, password := r.hook, r.user, r.password
	r.requests = append(r.requests, request)
	r.mutex.Unlock()
	counting := &countingWriter{w, r}
	if gotUser, gotPassword, _ := request.BasicAuth(); user != "" && (gotUser != user || gotPassword != password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if hook == nil || !hook(counting, request, r.inner) {
		r.inner.ServeHTTP(counting, request)
	}
}

type countingWriter struct {
	http.ResponseWriter
	registry *Registry
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.registry.mutex.Lock()
	defer w.registry.mutex.Unlock()
	w.registry.sent += int64(n)
	return n, err
}

// PutBlob stores a blob, and returns its digest.
func (r *Registry) PutBlob(t testing.TB, repository string, content []byte) string {
	t.Helper()
	digest := digestOf(content)
	r.put(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+digest, "application/octet-stream", content)
	return digest
}

// PutManifest stores a manifest under a tag, and returns its digest.
func (r *Registry) PutManifest(t testing.TB, repository, tag string, content []byte) string {
	t.Helper()
	r.put(t, http.MethodPut, "/v2/"+repository+"/manifests/"+tag, manifestType, content)
	return digestOf(content)
}

// Manifest is a manifest of an image for a platform. Its layers are named, and the registry does not have them.
type Manifest struct {
	// Platform is the platform as the index has it, in JSON; "" if the index names none.
	Platform json.RawMessage `json:"platform"`
	// Config is the platform as the configuration has it; "": that of the index.
	Config json.RawMessage `json:"config"`
	Layers []Layer         `json:"layers"`
}

// Layer is a layer of a manifest.
type Layer struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// PutIndex stores an image with an index under a tag, and returns the digest of the index.
func (r *Registry) PutIndex(t testing.TB, repository, tag string, manifests []Manifest) string {
	t.Helper()
	var all []map[string]any
	for i, m := range manifests {
		content := r.putImage(t, repository, fmt.Sprintf("%s-part-%d", tag, i), m)
		entry := map[string]any{"mediaType": manifestType, "digest": digestOf(content), "size": len(content)}
		if len(m.Platform) > 0 {
			entry["platform"] = m.Platform
		}
		all = append(all, entry)
	}
	content := encoded(t, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": all})
	r.put(t, http.MethodPut, "/v2/"+repository+"/manifests/"+tag, indexType, content)
	return digestOf(content)
}

// PutRecorded stores the images of a file, which has published indexes: the name of each image, its source and its manifests.
// The registry has them under the paths of their names, as a mirror has them.
func (r *Registry) PutRecorded(t testing.TB, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Image     string     `json:"image"`
		Manifests []Manifest `json:"manifests"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, one := range all {
		repository, tag, _ := strings.Cut(one.Image, ":")
		switch host, rest, ok := strings.Cut(repository, "/"); {
		case !ok:
			repository = "library/" + repository
		case strings.Contains(host, "."):
			repository = rest
		}
		r.PutIndex(t, repository, tag, one.Manifests)
	}
}

// PutImage stores an image without an index under a tag, and returns the digest of its manifest.
func (r *Registry) PutImage(t testing.TB, repository, tag string, m Manifest) string {
	t.Helper()
	return digestOf(r.putImage(t, repository, tag, m))
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

func (r *Registry) putImage(t testing.TB, repository, tag string, m Manifest) []byte {
	t.Helper()
	config := m.Config
	if len(config) == 0 {
		config = m.Platform
	}
	layers := []map[string]any{}
	for _, layer := range m.Layers {
		layers = append(layers, map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": layer.Digest, "size": layer.Size})
	}
	content := encoded(t, map[string]any{"schemaVersion": 2, "mediaType": manifestType, "layers": layers,
		"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": r.PutBlob(t, repository, config), "size": len(config)}})
	r.PutManifest(t, repository, tag, content)
	return content
}

func encoded(t testing.TB, value any) []byte {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// put makes a request without HTTP, so that neither hooks nor counters see it.
func (r *Registry) put(t testing.TB, method, path, mediaType string, content []byte) {
	t.Helper()
	request := httptest.NewRequest(method, path, bytes.NewReader(content))
	request.Header.Set("Content-Type", mediaType)
	answer := httptest.NewRecorder()
	r.inner.ServeHTTP(answer, request)
	if answer.Code != http.StatusCreated {
		t.Fatalf("%s %s: the registry answered %d: %s", method, path, answer.Code, strings.TrimSpace(answer.Body.String()))
	}
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
