//go:build e2e && linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	remoteprotocol "k8s.io/apimachinery/pkg/util/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	clusterapi "github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/wait"
)

// standInNodes are a Linux and a Windows node whose pods are addresses of loopback. A pod runs as soon as the
// scheduler has bound it. The programs in pods run in this process: swdt-probe is the real one, and curl answers
// requests as servers would.
type standInNodes struct {
	api      *clusterapi.Cluster
	requests atomic.Int32
}

// startStandInNodes makes the nodes lin-1 and win-1, which live until the test ends.
func startStandInNodes(t *testing.T, api *clusterapi.Cluster) {
	t.Helper()
	s := &standInNodes{api: api}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	host, text, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, system := range map[string]string{"lin-1": "linux", "win-1": "windows"} {
		n := &nodeObject{api: api, name: name, system: system}
		n.live(t)
		n.ready(t, func(status *corev1.NodeStatus) {
			status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
			status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
			status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
				corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("500")}
			status.Allocatable = status.Capacity
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait.For(ctx, 50*time.Millisecond) == nil {
			s.sync(ctx)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	within(t, time.Minute, "nodes without taints", func() error {
		all, err := api.Nodes(t.Context())
		for _, n := range all {
			if len(n.Taints) > 0 {
				return fmt.Errorf("node %s has the taints %v", n.Name, n.Taints)
			}
		}
		return err
	})
}

// sync lets bound pods run, and removes those that are being deleted. The next call repeats a request that failed.
func (s *standInNodes) sync(ctx context.Context) {
	all, err := s.api.Clientset().CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range all.Items {
		p, pods := &all.Items[i], s.api.Clientset().CoreV1().Pods(all.Items[i].Namespace)
		switch now := int64(0); {
		case p.DeletionTimestamp != nil:
			_ = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		case p.Spec.NodeName != "" && p.Status.PodIP == "":
			n := s.requests.Add(1)
			ip := fmt.Sprintf("127.140.%d.%d", n/250, 1+n%250)
			p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
			p.Status.ContainerStatuses = nil
			for _, c := range p.Spec.Containers {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name,
					Image: c.Image, ContainerID: "containerd://" + string(p.UID), Ready: true,
					State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}})
			}
			_, _ = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		}
	}
}

// ServeHTTP is the kubelet of both nodes, as far as commands in pods need it.
func (s *standInNodes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/containerLogs/") {
		_, _ = io.WriteString(w, "the server has started\n")
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/exec/") {
		http.NotFound(w, r)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, s, "", "", "", r.URL.Query()["command"], options, time.Hour, 30*time.Second,
		remoteprotocol.SupportedStreamingProtocols)
}

// ExecInContainer runs a command of a pod.
func (s *standInNodes) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out,
	_ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	last := command[len(command)-1]
	switch {
	case strings.HasPrefix(last, "file:"):
		_, err := io.Copy(io.Discard, in)
		return err
	case strings.Contains(command[0], "swdt-probe"):
		return netprobe.Run(ctx, in, out)
	case last == "--version":
		_, err := io.WriteString(out, "curl 8\n")
		return err
	case strings.HasPrefix(last, "http"):
		_, err := fmt.Fprintf(out, "%s\n200 0.000021", s.answer(command))
		return err
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("%q is no program of a pod", command), Code: 127}
}

// answer returns the answer of a server to a request of curl: the text that it sends, or the name of a pod.
func (s *standInNodes) answer(command []string) string {
	for _, word := range command {
		if text, ok := strings.CutPrefix(word, "msg="); ok {
			return text
		}
	}
	return fmt.Sprintf("backend-%d", 1+s.requests.Add(1)%2)
}
