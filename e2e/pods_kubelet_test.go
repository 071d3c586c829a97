//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSummaryOfRealKubelet checks that the kubelet's summary has the values that the runtime
// reports, including zeros. The kubelet runs without a cluster, with a pod from a file. An API
// server of the test forwards requests to the kubelet.
func TestSummaryOfRealKubelet(t *testing.T) {
	if os.Getenv("SWDT_LAB_CLUSTER") != "required" {
		t.Skip("needs the lab's kubelet, and kubelet's own ports: run make e2e")
	}
	n := newPodNode(t, "1.7.12")
	n.startKubelet(t)
	kubeconfig := apiServer(t, "wine-1", summaryPort)
	r := swdt(t, "stats", "watch", "--source", "summary", "--kubeconfig", kubeconfig, "-n", "wine-1", "--callers", "1",
		"--for", "30s", "--fail-on", "zero")
	if r.code != exitFinding || !strings.Contains(r.stderr, "default/burner-wine-1/burn") {
		t.Errorf("the summary has no zero: exit code %d", r.code)
	}
}

// summaryPort is kubelet's read-only port, without TLS.
const summaryPort = "10255"

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
staticPodPath: C:\k\manifests
containerRuntimeEndpoint: npipe:////./pipe/containerd-containerd
readOnlyPort: ` + summaryPort + `
evictionHard: {nodefs.available: 0%, imagefs.available: 0%}
cgroupsPerQOS: false
enforceNodeAllocatable: []
resolvConf: ""
`

const burnerManifest = `apiVersion: v1
kind: Pod
metadata: {name: burner, namespace: default}
spec:
  hostNetwork: true
  securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\SYSTEM'}}
  containers:
  - name: burn
    image: %s/burn:1
    args: ["--cores", "0.5"]
`

// startKubelet runs kubelet until the test ends, and waits until kubelet's summary has the pod.
func (n podNode) startKubelet(t *testing.T) {
	t.Helper()
	for from, to := range map[string]string{
		lab(t, "node/kubelet-1.36.3.exe"):                    kubeletExe,
		textFile(t, kubeletConfig):                           `C:\k\config.yaml`,
		textFile(t, fmt.Sprintf(burnerManifest, n.registry)): `C:\k\manifests\burner.yaml`,
	} {
		ok(t, "cp", "-c", n.config, from, "node:"+to)
	}
	kubelet := exec.Command(environment(t, "SWDT_BIN"), "exec", "-c", n.config, "--", kubeletExe,
		`--config=C:\k\config.yaml`, "--hostname-override=wine-1")
	kubelet.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheHome(t))
	var said bytes.Buffer
	kubelet.Stdout, kubelet.Stderr = &said, &said
	if err := kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = kubelet.Process.Kill()
		_ = kubelet.Wait()
		if t.Failed() {
			t.Logf("kubelet:\n%s", said.String())
		}
	})
	within(t, commandLimit, "the kubelet's summary has the pod", hasBurner)
}

func hasBurner() error {
	answer, err := http.Get("http://127.0.0.1:" + summaryPort + "/stats/summary")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	summary, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if !bytes.Contains(summary, []byte("burner-wine-1")) || !bytes.Contains(summary, []byte("usageNanoCores")) {
		return errors.New(string(summary))
	}
	return nil
}

// apiServer starts an API server with one node, which forwards requests to the node's kubelet. It
// returns the path of a kubeconfig for this API server.
func apiServer(t *testing.T, node, port string) (kubeconfig string) {
	t.Helper()
	kubelet := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "127.0.0.1:" + port})
	mux := http.NewServeMux()
	mux.Handle("/api/v1/nodes/"+node+"/proxy/", http.StripPrefix("/api/v1/nodes/"+node+"/proxy", kubelet))
	answer := func(path, json string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, json)
		})
	}
	answer("/api/v1/nodes/"+node, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+node+
		`"},"status":{"allocatable":{"cpu":"2"}}}`)
	answer("/api/v1/pods", `{"apiVersion":"v1","kind":"PodList","items":[]}`)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %s}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
