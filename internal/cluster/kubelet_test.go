package cluster_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// A node that the cluster does not have is a different error from a file that the node
// does not have. If the API server cannot reach the kubelet, the error contains its
// message, which the user needs.
func TestKubeletErrorsAreDistinct(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/gone/"):
			refuse(w, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "gone"))
		case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/lost/"):
			http.Error(w, "no preferred addresses found; known addresses: []", http.StatusInternalServerError)
		default:
			http.NotFound(w, r) // as the kubelet does
		}
	})
	for name, ask := range map[string]func(node string) error{
		"logs": func(node string) error {
			_, err := c.NodeLogs(t.Context(), node, "kubelet/kubelet.log", nil, "")
			return err
		},
		"configuration": func(node string) error {
			_, err := c.KubeletConfigz(t.Context(), node)
			return err
		},
		"goroutines": func(node string) error {
			_, err := c.KubeletGoroutines(t.Context(), node)
			return err
		},
		"statistics": func(node string) error {
			_, err := c.StatsSummary(t.Context(), node)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var none *cluster.NoNodeError
			if err := ask("gone"); !errors.As(err, &none) || none.Node != "gone" {
				t.Errorf("a node that is not there: %v", err)
			}
			if err := ask("here"); err == nil || errors.As(err, &none) {
				t.Errorf("a node that has not what it is asked for: %v", err)
			}
			if err := ask("lost"); err == nil || !strings.Contains(err.Error(), "no preferred addresses found") {
				t.Errorf("a node that has no address: %v", err)
			}
		})
	}
}

// The path is that of kubelet's server: pkg/kubelet/server/server.go of Kubernetes 1.36, InstallProfilingHandler.
func TestKubeletGoroutines(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/nodes/win-1/proxy/debug/pprof/goroutine" || r.URL.RawQuery != "debug=2" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = w.Write([]byte("goroutine 1 [running]:\n"))
	})
	body, err := c.KubeletGoroutines(t.Context(), "win-1")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if text, err := io.ReadAll(body); err != nil || string(text) != "goroutine 1 [running]:\n" {
		t.Errorf("%q, %v", text, err)
	}
}
