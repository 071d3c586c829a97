package cni_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/sandbox/hostprocess"
)

// kubeProxyImages are images that users have: those of sig-windows-tools
// (github.com/kubernetes-sigs/sig-windows-tools 401ee6f, hostprocess/calico/kube-proxy/Dockerfile, and 729ae7c^,
// hostprocess/flannel/kube-proxy/Dockerfile), and one without kube-proxy, for a node that has the program.
func kubeProxyImages() map[string]hostprocess.Image {
	files := []string{"kube-proxy/start.ps1", "kube-proxy/kube-proxy.exe", "kube-proxy/hns.psm1"}
	return map[string]hostprocess.Image{
		"named after Calico": {Entrypoint: []string{"PowerShell"}, Files: files},
		"named after flannel": {Files: files, Entrypoint: []string{"PowerShell", "/c",
			"$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1"}},
		"the base of HostProcess images": {},
		"with another entry point":       {Entrypoint: []string{"/agnhost"}, Command: []string{"pause"}, WorkingDir: `C:\x`},
	}
}

// kubeProxyPod returns the container of the DaemonSet, and the files of its volumes.
func kubeProxyPod(t *testing.T, w cni.Wanted) (corev1.PodSpec, map[string][]string) {
	t.Helper()
	objects := cni.KubeProxy(w)
	set := objects[len(objects)-1]
	spec, _, err := unstructured.NestedMap(set.Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(spec, &pod, true); err != nil {
		t.Fatal(err)
	}
	volumes := map[string][]string{}
	for _, v := range pod.Volumes {
		for _, o := range objects {
			if v.ConfigMap == nil || o.GetKind() != "ConfigMap" || o.GetName() != v.ConfigMap.Name {
				continue
			}
			data, _, _ := unstructured.NestedStringMap(o.Object, "data")
			for name := range data {
				volumes[v.Name] = append(volumes[v.Name], name)
			}
		}
	}
	return pod, volumes
}

// kube-proxy's container starts swdt's script with each image, on each Windows. The published image's own entry point
// alone, which earlier versions of swdt started, ends at once.
func TestKubeProxyStartsWithEachImage(t *testing.T) {
	for _, network := range []cni.Network{cni.Calico, cni.Flannel} {
		pod, volumes := kubeProxyPod(t, wanted(t, network))
		for image, content := range kubeProxyImages() {
			for name, windows := range hostprocess.All() {
				at := string(network) + ", " + image + ", " + name
				p, err := windows.Start(content, pod.Containers[0], volumes)
				if err != nil {
					t.Errorf("%s: %v", at, err)
					continue
				}
				if p.Program != cni.PowerShell || p.Arguments[len(p.Arguments)-1] != p.Root+`swdt\kube-proxy\start.ps1` {
					t.Errorf("%s: starts %s %q", at, p.Program, p.Arguments)
				}
				if p.Dir != p.Root {
					t.Errorf("%s: the working folder is %s, want %s, which exists", at, p.Dir, p.Root)
				}
			}
		}
	}
}

// The kubeconfig leads to the files of the pod's account, wherever the runtime has the root of the container.
func TestKubeProxyKubeconfigFindsTheAccountBelowTheRoot(t *testing.T) {
	root := t.TempDir()
	pod, _ := kubeProxyPod(t, wanted(t, cni.Calico))
	folder := filepath.Join(root, pod.Containers[0].VolumeMounts[0].MountPath)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "kubeconfig.conf")
	for _, o := range cni.KubeProxy(wanted(t, cni.Calico)) {
		if text, ok, _ := unstructured.NestedString(o.Object, "data", "kubeconfig.conf"); ok {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	account := filepath.Join(root, "var/run/secrets/kubernetes.io/serviceaccount")
	if err := os.MkdirAll(account, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.crt", "token"} {
		if err := os.WriteFile(filepath.Join(account, name), []byte("invented"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// as kube-proxy reads it, see k8s.io/kubernetes v1.36.3, cmd/kube-proxy/app/server.go
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://kind-control-plane:6443" || config.BearerTokenFile != filepath.Join(account, "token") ||
		config.CAFile != filepath.Join(account, "ca.crt") {
		t.Errorf("%s, token %s, certificates %s", config.Host, config.BearerTokenFile, config.CAFile)
	}
}

// Kubernetes 1.38 knows no gates WinDSR and WinOverlay, and kube-proxy ends if it reads them.
func TestKubeProxyHasNoFeatureGates(t *testing.T) {
	for _, o := range cni.KubeProxy(wanted(t, cni.Calico)) {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, never := range []string{"feature-gates", "WinDSR", "WinOverlay", "--config", "iptables"} {
			if strings.Contains(string(text), never) {
				t.Errorf("%s has %q", cni.RefOf(o), never)
			}
		}
	}
}

// A change of the script or of the API server's address restarts the pods.
func TestKubeProxyPodsFollowTheirFiles(t *testing.T) {
	annotation := func(w cni.Wanted) string {
		objects := cni.KubeProxy(w)
		text, _, _ := unstructured.NestedString(objects[len(objects)-1].Object, "spec", "template", "metadata", "annotations",
			"swdt.dev/kube-proxy")
		return text
	}
	w := wanted(t, cni.Calico)
	before := annotation(w)
	w.APIServerPort = 8443
	if after := annotation(w); before == "" || after == before || annotation(w) != after {
		t.Errorf("annotations %q, %q", before, after)
	}
}

// The published images have one tag for each stable version, whatever a vendor adds to the version, and for no other.
func TestKubeProxyImageIsPublished(t *testing.T) {
	for server, want := range map[string]string{
		"v1.36.3":                 "v1.36.3",
		"v1.33.0":                 "v1.33.0",
		"v1.34.1+k3s1":            "v1.34.1",
		"v1.34.1+rke2r1":          "v1.34.1",
		"v1.35.3-eks-3abbec1":     "v1.35.3",
		"v1.35.3-gke.1389000":     "v1.35.3",
		"v1.38.0-beta.0":          "",
		"v1.38.0-alpha.3":         "",
		"v1.37.0-rc.0":            "",
		"v1.38.0-beta.0.12+0a1b2": "",
	} {
		f := cni.Facts{Version: server, PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/12"},
			APIServer: "10.0.0.1:6443"}
		for _, network := range []cni.Network{cni.Calico, cni.Flannel} {
			w, err := cni.Settings{Network: network}.Complete(f)
			if err != nil {
				t.Fatal(err)
			}
			if want != "" {
				if image := "sigwindowstools/kube-proxy:" + want + "-calico-hostprocess"; w.KubeProxyImage != image ||
					w.CheckKubeProxyImage(f) != nil {
					t.Errorf("%s: %s, want %s", server, w.KubeProxyImage, image)
				}
				continue
			}
			var none *cni.NoKubeProxyImageError
			if err := w.CheckKubeProxyImage(f); !errors.As(err, &none) || !strings.Contains(err.Error(), "--kube-proxy-image") {
				t.Errorf("%s: %q, %v", server, w.KubeProxyImage, err)
			}
		}
	}
}
