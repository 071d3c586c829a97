//go:build e2e && linux

package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNodesOfKindGetImagesAndMirrors loads an image of Docker into a real cluster of kind, and makes
// the node's containerd pull another image from a mirror of docker.io.
func TestNodesOfKindGetImagesAndMirrors(t *testing.T) {
	if !inDocker(t) {
		return
	}
	loadKindImage(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "kubeconfig"))
	const subnet, gateway = "172.30.0.0/16", "172.30.0.1"
	run(t, "docker", "network", "create", "--subnet", subnet, "kind")
	importImage(t, "app:v1", "first")
	mirror := serveMirror(t, gateway)
	file := clusterFile(t, ", images: [app:v1], registryMirrors: [{registry: docker.io, endpoints: ['", mirror.url, "']}]")
	create := []string{"cluster", "create", "-c", file, "-o", "json"}
	const wrote, loaded = "write the mirrors of docker.io on dev-control-plane", "load image app:v1 into dev-control-plane"
	expectChanges(t, create, "make the cluster with kind", wrote, loaded)
	expectChanges(t, create)
	const node = "dev-control-plane"
	if got, want := idOn(t, node, "app:v1"), idInDocker(t, "app:v1"); got != want {
		t.Errorf("the node's image has the ID %s, want %s", got, want)
	}

	run(t, "docker", "exec", node, "crictl", "pull", "docker.io/library/hello:v1")
	mirror.expectPull(t)

	importImage(t, "app:v1", "second")
	expectChanges(t, create, loaded)
	expectChanges(t, create)
	if got, want := idOn(t, node, "app:v1"), idInDocker(t, "app:v1"); got != want {
		t.Errorf("after it was built again the node's image has the ID %s, want %s", got, want)
	}
	expectChanges(t, []string{"cluster", "create", "-c", clusterFile(t), "-o", "json"},
		"remove the mirrors of docker.io from dev-control-plane")
}

// expectChanges runs `swdt cluster create`, and compares the reported changes.
func expectChanges(t *testing.T, create []string, want ...string) {
	t.Helper()
	report := decoded[clusterReport](t, ok(t, create...))
	if diff := cmp.Diff(append([]string{}, want...), report.Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// importImage makes an image with one file in Docker.
func importImage(t *testing.T, name, text string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(archive, layerOf(t, text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "docker", "import", archive, name)
}

func layerOf(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "text", Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func idInDocker(t *testing.T, image string) string {
	t.Helper()
	return strings.TrimSpace(run(t, "docker", "image", "inspect", "--format", "{{.Id}}", image))
}

// idOn returns the ID of an image in the containerd of a node of kind.
func idOn(t *testing.T, node, image string) string {
	t.Helper()
	var found struct{ Status struct{ ID string } }
	text := run(t, "docker", "exec", node, "crictl", "inspecti", image)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatal(err)
	}
	return found.Status.ID
}

// mirror is a mirror of a registry. It serves one image, by the protocol of registries.
type mirror struct {
	url   string
	blobs map[string][]byte // by path

	mu    sync.Mutex
	pulls []string // the paths and queries of the requests that the mirror has answered
}

// serveMirror serves hello:v1 at an address until the test ends.
func serveMirror(t *testing.T, address string) *mirror {
	t.Helper()
	layer := layerOf(t, "hello")
	config := fmt.Appendf(nil, `{"architecture":"amd64","os":"linux","config":{},`+
		`"rootfs":{"type":"layers","diff_ids":[%q]}}`, digestOf(layer))
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":%d},`+
		`"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		manifestType, "application/vnd.oci.image.config.v1+json", digestOf(config), len(config),
		"application/vnd.oci.image.layer.v1.tar", digestOf(layer), len(layer))
	const hello = "/v2/library/hello/"
	m := &mirror{blobs: map[string][]byte{
		hello + "manifests/v1": manifest, hello + "manifests/" + digestOf(manifest): manifest,
		hello + "blobs/" + digestOf(config): config, hello + "blobs/" + digestOf(layer): layer,
	}}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: m}}
	server.Start()
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

func digestOf(blob []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(blob)) }

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	blob, ok := m.blobs[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	m.pulls = append(m.pulls, r.URL.String())
	m.mu.Unlock()
	w.Header().Set("Content-Type", "application/octet-stream")
	if strings.Contains(r.URL.Path, "/manifests/") {
		w.Header().Set("Content-Type", manifestType)
	}
	w.Header().Set("Docker-Content-Digest", digestOf(blob))
	_, _ = w.Write(blob) // a client that has disconnected needs no answer
}

// expectPull checks that the mirror has got a request for the image of docker.io.
func (m *mirror) expectPull(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pulls) == 0 || m.pulls[0] != "/v2/library/hello/manifests/v1?ns=docker.io" {
		t.Errorf("the mirror served %q", m.pulls)
	}
}
