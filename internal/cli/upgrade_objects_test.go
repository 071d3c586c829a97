package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/join/objectfix"
	cluster_simulated "github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

const proxyObjects = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-system, name: kube-proxy, labels: {app.kubernetes.io/managed-by: Helm}}
data:
  config.conf: |
    # ours
    kind: KubeProxyConfiguration
    featureGates: {WinDSR: true, WindowsGracefulNodeShutdown: true}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: kube-system, name: proxy-of-the-image}
spec:
  selector: {matchLabels: {app: proxy}}
  template:
    metadata: {labels: {app: proxy}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers:
      - {name: kube-proxy, image: "sigwindowstools/kube-proxy:v1.36.3-calico-hostprocess", args: ["$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1"]}
`

// --fix shows what changes in objects, needs an answer, and changes them. A gate that the script in an image sets is left. That fields
// of other managers stay is tested with a real API server, in package objectfix.
func TestFixOfObjects(t *testing.T) {
	control, err := cluster_simulated.Start(cluster_simulated.Options{Version: "v1.36.3", NoPodNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	if err := control.Plant(proxyObjects); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "admin.conf")
	if err := control.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string) {
		return withoutNodeFile(t, append([]string{"upgrade", "check", "--kubeconfig", kubeconfig, "--kubernetes", "1.38"}, args...)...)
	}
	if code, _ := run("--fix"); code != 2 {
		t.Errorf("without a terminal: exit code %d", code)
	}
	if code, _ := run("--force"); code != 2 {
		t.Errorf("--force alone: exit code %d", code)
	}
	code, out := run("--fix", "--dry-run")
	for _, want := range []string{"ConfigMap kube-system/kube-proxy: planned", "  -featureGates: {WinDSR: true, WindowsGracefulNodeShutdown: true}",
		"  +featureGates: {WindowsGracefulNodeShutdown: true}", "helm upgrade", "restart the DaemonSet or Deployment",
		"left: DaemonSet kube-system/proxy-of-the-image", "start kube-proxy.exe with a command of your own"} {
		if code != 5 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, out)
		}
	}
	for _, want := range []string{objectfix.Changed, ""} {
		code, out := run("--fix", "--yes", "-o", "json")
		var report objectfix.Report
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != 5 {
			t.Fatalf("exit code %d, %v\n%s", code, err, out)
		}
		got := ""
		for _, c := range report.Objects {
			got += c.Result
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s\n%s", diff, out)
		}
	}
}
