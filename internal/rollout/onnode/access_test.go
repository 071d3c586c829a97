package onnode

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
)

// The token and the certificate of the API server are those below the root of the container.
func TestTheAccessOfAPod(t *testing.T) {
	var tokens []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		http.Error(w, "", http.StatusForbidden)
	}))
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	t.Setenv("CONTAINER_SANDBOX_MOUNT_POINT", root)
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	if found, err := containerRoot(); err != nil || found != root {
		t.Fatalf("the root is %q, %v", found, err)
	}
	if _, err := podAccess(root); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("without a token: %v", err)
	}
	folder := filepath.Join(root, accountFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string][]byte{"token": []byte("of-the-pod"), "ca.crt": certificate} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	access, err := podAccess(root)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.FromConfig(access)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Dynamic().Resource(fleetv1.StateResource()).Get(t.Context(), "w0", metav1.GetOptions{}) // it is refused
	if len(tokens) == 0 || tokens[0] != "Bearer of-the-pod" {
		t.Errorf("the API server got %q", tokens)
	}
}

func TestOutsideOfAPod(t *testing.T) {
	t.Setenv("CONTAINER_SANDBOX_MOUNT_POINT", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := containerRoot(); err == nil {
		t.Error("there is a root")
	}
	if _, err := podAccess(t.TempDir()); err == nil {
		t.Error("there is an API server")
	}
}
