package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// serve returns a Cluster whose API server is handler.
func serve(t *testing.T, handler http.HandlerFunc) *cluster.Cluster {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return opened(t, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
}

func opened(t *testing.T, config *rest.Config) *cluster.Cluster {
	t.Helper()
	c, err := cluster.FromConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // it fails only if the client has gone
}

// refuse answers like an API server that refuses a request.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	if d := err.ErrStatus.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(d.RetryAfterSeconds))
	}
	err.ErrStatus.APIVersion, err.ErrStatus.Kind = "v1", "Status"
	answer(w, int(err.ErrStatus.Code), err.ErrStatus)
}

func TestErrorsHaveTheirKinds(t *testing.T) {
	ctx := context.Background()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	nodes := schema.GroupResource{Resource: "nodes"}
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0) // the server would log that we refuse its certificate
	stranger.StartTLS()
	defer stranger.Close()

	t.Run("no process listens", func(t *testing.T) {
		c := opened(t, &rest.Config{Host: "https://" + closed.Addr().String()})
		_, err := c.Node(ctx, "win-1")
		var unreachable *cluster.UnreachableError
		if !errors.As(err, &unreachable) {
			t.Fatalf("the error is %v, a %T, want a %T", err, err, unreachable)
		}
		for _, want := range []string{closed.Addr().String(), "is the cluster running"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error lacks %q: %v", want, err)
			}
		}
	})
	t.Run("a certificate of another authority", func(t *testing.T) {
		_, err := opened(t, &rest.Config{Host: stranger.URL}).Version(ctx)
		var unreachable *cluster.UnreachableError
		if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "kubeconfig of this cluster") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("unauthorized", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, apierrors.NewUnauthorized("who?")) })
		_, err := c.Node(ctx, "win-1")
		var unauthorized *cluster.UnauthorizedError
		if !errors.As(err, &unauthorized) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("forbidden", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, apierrors.NewForbidden(nodes, "win-1", errors.New("no")))
		})
		_, err := c.Node(ctx, "win-1")
		var forbidden *cluster.ForbiddenError
		if !errors.As(err, &forbidden) || !strings.Contains(err.Error(), "kubectl auth can-i get nodes/win-1") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("too slow", func(t *testing.T) {
		done := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
		defer server.Close()
		defer close(done)
		_, err := opened(t, &rest.Config{Host: server.URL, Timeout: 50 * time.Millisecond}).Node(ctx, "win-1")
		var unreachable *cluster.UnreachableError
		if !errors.As(err, &unreachable) {
			t.Errorf("error %v", err)
		}
	})
}

// A 429 with a Retry-After must not delay the other pods: client-go would sleep for that
// time. An interruption removes the cordon, with requests that the interruption does not
// cancel.
func TestRefusedEvictionDelaysNoOtherPod(t *testing.T) {
	asked, patched := make(chan string, 100), make(chan string, 10)
	var cordoned atomic.Bool
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/eviction"):
			asked <- strings.Split(r.URL.Path, "/")[6]
			refusal := apierrors.NewTooManyRequests("not now", 10)
			refusal.ErrStatus.Details.Causes = []metav1.StatusCause{
				{Type: "DisruptionBudget", Message: "needs 1 healthy pod and has 1"},
			}
			refuse(w, refusal)
		case r.URL.Path == "/api/v1/nodes/win-1":
			if r.Method == http.MethodPatch {
				body, _ := io.ReadAll(r.Body)
				cordoned.Store(strings.Contains(string(body), `"unschedulable":true`))
				patched <- string(body)
			}
			answer(w, http.StatusOK, nodeCordoned(cordoned.Load()))
		case r.URL.Path == "/api/v1/pods":
			answer(w, http.StatusOK, corev1.PodList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
				Items:    []corev1.Pod{*pod("a"), *pod("b")},
			})
		default:
			refuse(w, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path))
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Drain(ctx, cluster.Machine{Node: "win-1"}, cluster.DrainOptions{}, &story{})
		failed <- err
	}()
	// Both evictions are requested, although the first is to be retried after 10 s.
	if first, second := <-asked, <-asked; first != "a" || second != "b" {
		t.Errorf("asked for %s, then %s", first, second)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Drain = %v", err)
	}
	if len(patched) != 2 || cordoned.Load() {
		t.Errorf("after %d patches the node is cordoned: %v", len(patched), cordoned.Load())
	}
}

func nodeCordoned(yes bool) *corev1.Node {
	n := node("win-1")
	n.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	if n.Spec.Unschedulable = yes; yes {
		n.Annotations = map[string]string{"swdt.dev/cordoned": "2026-11-20T12:00:00Z"}
	}
	return n
}

func TestClockSkew(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"the same": 0, "ahead": 90 * time.Second, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
				w.WriteHeader(http.StatusForbidden) // the answer contains the time nevertheless
			})
			skew, err := c.ClockSkew(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if off := skew.Offset - ahead; off.Abs() > skew.Uncertainty {
				t.Errorf("offset %s ± %s, though it is %s", skew.Offset, skew.Uncertainty, ahead)
			}
			if skew.Uncertainty < 500*time.Millisecond {
				t.Errorf("more certain (%s) than a Date can be", skew.Uncertainty)
			}
		})
	}
	t.Run("no date", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil })
		if skew, err := c.ClockSkew(context.Background()); err == nil {
			t.Errorf("skew %+v of nothing", skew)
		}
	})
}

// serveHTTP returns the URL of a server for handler without TLS.
func serveHTTP(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}
