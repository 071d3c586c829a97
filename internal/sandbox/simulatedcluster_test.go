package sandbox_test

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/sandbox"
)

func TestASimulatedClusterComesAndGoesWithItsSandbox(t *testing.T) {
	o := options(t)
	o.Cluster = true
	info := up(t, o)
	if file, err := os.Stat(info.Kubeconfig); err != nil || file.Mode().Perm()&0o077 != 0 {
		t.Fatalf("the kubeconfig: %v %v", file, err)
	}
	client, err := clientcmd.BuildConfigFromFlags("", info.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(client)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 0 {
		t.Errorf("nodes before anyone joins: %v, %v", nodes, err)
	}
	docs, err := config.Load([]string{info.Config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := docs[0].Node.Spec.Kubernetes
	if spec.Version == "" || spec.Containerd.Version == "" {
		t.Errorf("what the node file has to join with: %+v", spec)
	}
	for _, source := range []string{spec.Containerd.Source, spec.Kubelet.Source, spec.Kubelet.KubeadmSource,
		spec.Kubelet.LogRunnerSource, spec.Kubelet.KubeProxySource} {
		if _, err := os.Stat(source); err != nil {
			t.Error(err)
		}
	}
	if err := connect(t, info); err != nil {
		t.Errorf("use the sandbox: %v", err)
	}
	if err := sandbox.Down(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(client.Host, "https://"), 5*time.Second)
	if err == nil {
		conn.Close()
		t.Error("the API server still listens")
	}
}

func TestASandboxWithoutAClusterGetsNone(t *testing.T) {
	o := options(t)
	if info := up(t, o); info.Kubeconfig != "" {
		t.Errorf(`info.Kubeconfig is %q, want ""`, info.Kubeconfig)
	}
	o.Cluster = true
	if _, err := sandbox.Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), "without a cluster") {
		t.Errorf("a cluster for a sandbox that runs: %v", err)
	}
}
