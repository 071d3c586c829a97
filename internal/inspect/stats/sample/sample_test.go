package sample_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/client-go/rest"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/poll"
	"github.com/swdt-dev/swdt/internal/inspect/stats/sample"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
)

// serve returns a client of a simulated containerd with this number of pods. Each pod uses
// 0.2 cores and may use half a core of four.
func serve(t testing.TB, version string, pods int) *criclient.Client {
	t.Helper()
	began := time.Now().Add(-time.Hour)
	var workload criserver.Workload
	for i := range pods {
		workload.Pods = append(workload.Pods, criserver.Pod{
			ID: fmt.Sprintf("pod%d", i), Name: fmt.Sprintf("burner-%d", i), Namespace: "default", Created: began,
			Containers: []criserver.Container{{
				ID: fmt.Sprintf("container%d", i), Name: "burn", Cores: 0.2, Memory: 21 << 20, Maximum: 1250,
			}},
		})
	}
	return serveWorkload(t, version, workload)
}

func serveWorkload(t testing.TB, version string, workload criserver.Workload) *criclient.Client {
	t.Helper()
	server := criserver.NewServer(criserver.Options{Version: version, Workload: workload})
	listener := bufconn.Listen(1 << 20)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	client, err := criclient.New(t.Context(), func(ctx context.Context) (net.Conn, error) {
		return listener.DialContext(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return client
}

// only returns the one sample of an answer of a machine with four cores.
func only(t *testing.T, samples []stats.Sample, cores float64, err error) stats.Sample {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if cores != 4 {
		t.Errorf("%v cores, want 4", cores)
	}
	if len(samples) != 1 {
		t.Fatalf("%d samples, want 1: %+v", len(samples), samples)
	}
	return samples[0]
}

func TestRuntimeSamplesAreRead(t *testing.T) {
	for _, test := range []struct {
		version string
		rates   []bool // whether the first and the second answer report a rate
	}{
		{"v1.6.27", []bool{false, false}}, {"v1.7.12", []bool{true, true}}, {"v2.2.1", []bool{true, true}},
		{"v2.4.2", []bool{false, true}},
	} {
		t.Run(test.version, func(t *testing.T) {
			cri := sample.NewCRI(serve(t, test.version, 1).Runtime, 4, false)
			for i, want := range test.rates {
				samples, cores, err := cri.Ask(t.Context())
				s := only(t, samples, cores, err)
				if s.Container != (stats.Container{ID: "container0", Namespace: "default", Pod: "burner-0", Name: "burn"}) {
					t.Errorf("container %+v", s.Container)
				}
				if got := s.Reported != nil; got != want {
					t.Errorf("answer %d has a rate: %v", i, got)
				}
				if s.Limit != 0.5 {
					t.Errorf("limit %v, want 0.5", s.Limit)
				}
				if *s.Counter < uint64(12*time.Minute) {
					t.Errorf("counter %d, want at least %d", *s.Counter, 12*time.Minute)
				}
				if *s.Memory != 21<<20 {
					t.Errorf("memory %d, want %d", *s.Memory, 21<<20)
				}
			}
		})
	}
}

// absentminded is a runtime whose ContainerStatus fails once.
type absentminded struct {
	sample.Runtime
	failed bool
}

func (r *absentminded) ContainerStatus(ctx context.Context, q *runtimev1.ContainerStatusRequest,
	o ...grpc.CallOption) (*runtimev1.ContainerStatusResponse, error) {
	if !r.failed {
		r.failed = true
		return nil, status.Error(codes.Unavailable, "the connection was lost")
	}
	return r.Runtime.ContainerStatus(ctx, q, o...)
}

func TestFailedDetailIsRequestedAgain(t *testing.T) {
	cri := sample.NewCRI(&absentminded{Runtime: serve(t, "v1.7.12", 1).Runtime}, 4, false)
	for i, want := range []float64{0, 0.5} {
		samples, _, err := cri.Ask(t.Context())
		if s := only(t, samples, 4, err); s.Limit != want {
			t.Errorf("answer %d: limit %v, want %v", i, s.Limit, want)
		}
	}
}

func TestPodsAsAWhole(t *testing.T) {
	samples, _, err := sample.NewCRI(serve(t, "v1.7.12", 2).Runtime, 4, true).Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != 4 {
		t.Fatalf("%d samples, want 4: %+v", len(samples), samples)
	}
	if got := samples[2].Container.Path(); got != "default/burner-0" {
		t.Errorf("the third sample is of %s, want default/burner-0", got)
	}
}

// The runtime reports 0 for a busy container to one of two callers, as in containerd
// issue 9531.
func TestTwoCallersSpoilEachOther(t *testing.T) {
	cri := sample.NewCRI(serve(t, "v1.7.12", 1).Runtime, 4, false)
	follower, zeros := stats.NewFollower(stats.DefaultTolerance), 0
	o := poll.Options{Askers: []poll.Asker{cri}, Interval: 550 * time.Millisecond, Callers: 1}
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := poll.Run(ctx, o, func(r stats.Reading) error {
		for _, row := range follower.Add(r) {
			if slices.Contains(row.Verdicts, stats.Zero) {
				if zeros++; zeros == 3 {
					return enough
				}
			}
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("%d zeros, %v", zeros, err)
	}
}

func TestKubeletSamplesAreRead(t *testing.T) {
	const summary = `{"node":{"nodeName":"win"},"pods":[{"podRef":{"name":"cpulimittest","namespace":"cpu","uid":"1"},
		"containers":[{"name":"burn","startTime":"2024-01-20T22:06:18Z",
		"cpu":{"time":"2024-01-22T19:48:13Z","usageNanoCores":504720890,"usageCoreNanoSeconds":82450187500000},
		"memory":{"workingSetBytes":126976000}}, {"name":"started just now","startTime":"2024-01-20T22:06:18Z"}]}]}`
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/nodes/win/proxy/stats/summary", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(summary))
	})
	mux.HandleFunc("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("fieldSelector") != "spec.nodeName=win" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PodList", "apiVersion": "v1", "items": []any{map[string]any{
			"metadata": map[string]any{"name": "cpulimittest", "namespace": "cpu"},
			"spec": map[string]any{"nodeName": "win", "containers": []any{map[string]any{
				"name": "burn", "resources": map[string]any{"limits": map[string]any{"cpu": "500m"}},
			}}},
		}}})
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	c, err := cluster.FromConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	samples, cores, err := sample.NewSummary(c, "win", 4).Ask(t.Context())
	s := only(t, samples, cores, err)
	if got := s.Container.Path(); got != "cpu/cpulimittest/burn" {
		t.Errorf("container %s", got)
	}
	want := stats.Sample{Container: s.Container, Taken: time.Date(2024, 1, 22, 19, 48, 13, 0, time.UTC),
		Reported: new(uint64(504720890)), Counter: new(uint64(82450187500000)), Limit: 0.5,
		Memory: new(uint64(126976000))}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("the sample differs (-want +got):\n%s", diff)
	}
	if _, _, err := sample.NewSummary(c, "other", 4).Ask(t.Context()); err == nil {
		t.Error("a node that is not there answered")
	}
}
