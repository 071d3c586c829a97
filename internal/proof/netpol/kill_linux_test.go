package netpol_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/clustertest"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/netpol"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/wait"
)

// childFolder makes this program a run that the test kills. Its value is the folder of the test.
const childFolder = "SWDT_TEST_NETPOL_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(childFolder); folder != "" {
		child(folder)
	}
	os.Exit(m.Run())
}

func child(folder string) {
	c, err := cluster.Open(cluster.Options{Kubeconfig: filepath.Join(folder, "admin.conf")})
	if err == nil {
		_, err = netpol.Run(context.Background(), c, quick(folder))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// quick returns options with short times, and probes in this process.
func quick(folder string) netpol.Options {
	model, modelErr := netpol.Standard(netpol.MinPods, corev1.ProtocolTCP)
	cases, err := netpol.Cases()
	records, openErr := leftover.Open(filepath.Join(folder, "records"))
	if err := errors.Join(modelErr, err, openErr); err != nil {
		panic(err) // a mistake of the test
	}
	return netpol.Options{Model: model, Cases: cases[:1], Records: records, Execs: inProcess{},
		Program: func(string, string) ([]byte, error) { return nil, nil },
		Settle:  200 * time.Millisecond, ProbeTimeout: 100 * time.Millisecond}
}

// inProcess runs the probes of pods in this process.
type inProcess struct{}

func (inProcess) Stream(ctx context.Context, _ cluster.Pod, _ string, command []string, s cluster.ExecStreams) (int,
	error) {
	if strings.HasPrefix(command[0], "curl") {
		_, err := io.Copy(io.Discard, s.In)
		return 0, err
	}
	return 0, netprobe.Run(ctx, s.In, s.Out)
}

// runKubelets stands for the scheduler and the kubelets: it reports pods as running.
func runKubelets(t *testing.T, c *cluster.Cluster, network byte) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		addresses := map[string]string{}
		for wait.For(ctx, 50*time.Millisecond) == nil {
			all, err := c.Clientset().CoreV1().Pods("").List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for i := range all.Items {
				p := &all.Items[i]
				if p.Status.PodIP != "" {
					continue
				}
				key := p.Namespace + "/" + p.Name
				if addresses[key] == "" {
					addresses[key] = fmt.Sprintf("127.%d.0.%d", network, len(addresses)+1)
				}
				p.Spec.NodeName = "lin-1"
				bound, err := c.Clientset().CoreV1().Pods(p.Namespace).Update(ctx, p, metav1.UpdateOptions{})
				if err != nil {
					continue
				}
				bound.Status.PodIP = addresses[key]
				bound.Status.ContainerStatuses = []corev1.ContainerStatus{{
					State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
				_, _ = c.Clientset().CoreV1().Pods(p.Namespace).UpdateStatus(ctx, bound, metav1.UpdateOptions{})
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// A run is killed at a change that it wants to make, before or after the API server has made it. The next
// command leaves no namespace.
func TestKilledAtAnyChange(t *testing.T) {
	for i, at := range []int32{1, 4, 8, 13, 15} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			killAt(t, at, byte(70+i))
		})
	}
}

func killAt(t *testing.T, at int32, network byte) {
	api, err := apiserver.Start(apiserver.Options{NoPodNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	api.AddResource(apiserver.Resource{Group: "networking.k8s.io", Version: "v1", Name: "networkpolicies",
		Kind: "NetworkPolicy", Namespaced: true})
	folder := t.TempDir()
	if err := api.WriteKubeconfig(filepath.Join(folder, "admin.conf")); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Options{Kubeconfig: filepath.Join(folder, "admin.conf")})
	if err != nil {
		t.Fatal(err)
	}
	clustertest.MakeNode(t, c, node("lin-1", "linux"))
	runKubelets(t, c, network)
	run := exec.CommandContext(t.Context(), os.Args[0])
	run.Env = append(os.Environ(), childFolder+"="+folder)
	var changes atomic.Int32
	started, killed := make(chan struct{}), make(chan struct{})
	api.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		own := strings.HasPrefix(r.Namespace+r.Name, "swdt-netpol-") || r.Resource == "namespaces"
		change := r.Verb == "create" || r.Verb == "delete"
		if !own || !change || changes.Add(1) != at {
			return apiserver.Verdict{}
		}
		<-started
		close(killed)
		_ = run.Process.Kill()
		return apiserver.Verdict{Drop: at%2 == 0}
	})
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	_ = run.Wait() // fails, since it is killed
	select {
	case <-killed:
	default:
		t.Fatalf("the run ended after %d changes", changes.Load())
	}
	api.OnRequest(nil)
	if err := c.Clientset().CoreV1().Nodes().Delete(t.Context(), "lin-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var none *netpol.NoNodeError
	report, err := netpol.Run(t.Context(), c, quick(folder))
	if !errors.As(err, &none) {
		t.Errorf("the next command: %v", err)
	}
	t.Logf("killed at change %d: the next command removed %d namespaces", at, len(report.Leftovers))
	left, err := c.Clientset().CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range left.Items {
		if strings.HasPrefix(n.Name, "swdt-") {
			t.Errorf("namespace %s is left", n.Name)
		}
	}
}
