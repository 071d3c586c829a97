package control_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout/onnode"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// depot serves binaries over HTTP.
type depot struct {
	t      *testing.T
	server *httptest.Server

	mutex sync.Mutex
	files map[string][]byte
}

func newDepot(t *testing.T, files map[string][]byte) *depot {
	d := &depot{t: t, files: files}
	d.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mutex.Lock()
		content, ok := d.files[r.URL.Path[1:]]
		d.mutex.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(content)
	}))
	t.Cleanup(d.server.Close)
	return d
}

// add adds or replaces a file.
func (d *depot) add(file string, content []byte) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.files[file] = content
}

// content returns a content that brings one of the depot's files to the nodes as their kubelet.
func (d *depot) content(file string) fleetv1.Content {
	return contentOf(d.server.URL+"/"+file, d.sum(file))
}

// sum returns the SHA-256 of one of the depot's files.
func (d *depot) sum(file string) string {
	sum := sha256.Sum256(d.files[file])
	return hex.EncodeToString(sum[:])
}

// contentOf returns a content that brings a kubelet to the nodes.
func contentOf(url, sha256 string) fleetv1.Content {
	settle, timeout := fleetv1.Duration("20ms"), fleetv1.Duration("500ms")
	return fleetv1.Content{Provisioners: []fleetv1.Provisioner{{
		Name: "kubelet", SourceURL: url, SHA256: sha256,
		Destination: simulated.KubeletPath,
		Health:      &fleetv1.Health{Settle: &settle, Timeout: &timeout},
	}}}
}

func kubelet(version string, fault simulated.Fault) []byte {
	return simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: version, Fault: fault})
}

// machine is a simulated Windows with the program of the fleet on it.
type machine struct {
	*nodetest.Node
	before []byte // its kubelet at first
	secret string // the path of its pull secret
	copies string // has copies of its files, for programs that are not on the machine
}

func newMachine(t *testing.T, name string) *machine {
	m := &machine{Node: nodetest.Start(t, name, simulated.Options{})}
	m.before = m.Get(simulated.KubeletPath)
	m.copies = t.TempDir()
	m.secret = filepath.Join(m.copies, ".dockerconfigjson")
	return m
}

// run runs the program of the fleet until ctx ends.
func (m *machine) run(ctx context.Context, client dynamic.Interface, cache string) error {
	return onnode.Run(ctx, onnode.Options{
		Node: m.Name, Client: client, Retry: 100 * time.Millisecond,
		Sources: source.NewSet(source.Options{Cache: cache, Credential: distribution.MountedPullSecret(m.secret)}),
		Local:   m.local,
		Open: func(ctx context.Context) (*node.Node, error) {
			if err := m.Reconnect(ctx); err != nil {
				return nil, err
			}
			return m.Node.Node, nil
		},
	})
}

// local returns the path of a copy of a file of the machine.
func (m *machine) local(path string) string {
	name := filepath.Join(m.copies, filepath.Base(strings.ReplaceAll(path, `\`, "/")))
	content, err := m.Machine.ReadFile(path)
	if err == nil {
		_ = os.WriteFile(name, content, 0o600) // without the copy, there is no base for a patch
	}
	return name
}

// runs reports whether the machine has this kubelet.
func (m *machine) runs(kubelet []byte) bool {
	content, err := m.Machine.ReadFile(simulated.KubeletPath) // a power cut ends the process behind m.Files
	return err == nil && string(content) == string(kubelet)
}

func machines(t *testing.T, count int) (all []*machine) {
	for i := range count {
		all = append(all, newMachine(t, fmt.Sprintf("w%d", i)))
	}
	return all
}

// probedURL is the URL that machine.probed serves.
const probedURL = "http://127.0.0.1:8099/ready"

// probed makes the machine answer probedURL: with success if ready returns true.
func (m *machine) probed(t *testing.T, ready func() bool) {
	t.Helper()
	err := m.Machine.Spawn("probed").HandleHTTP("127.0.0.1:8099", http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			if !ready() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
}
