package cluster_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Each state in which kube-proxy does not run on Windows nodes is found in the objects of the cluster, and the states
// in which it runs are not.
func TestKubeProxiesThatDoNotRunAreFound(t *testing.T) {
	const published = "sigwindowstools/kube-proxy:v1.36.3-calico-hostprocess"
	script := []string{"$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1"}
	for name, test := range map[string]struct {
		image  string
		args   []string
		server string
		config map[string]string // of the ConfigMap that the pod mounts
		mode   string            // in kubeadm's ConfigMap
		want   string            // "" if it runs
	}{
		"as sig-windows-tools publishes it":           {image: published, args: script, server: "v1.36.3"},
		"as sig-windows-tools publishes it, for 1.38": {image: strings.Replace(published, "36.3", "38.0", 1), args: script, server: "v1.38.0", want: "WinDSR=true"},
		"swdt's own": {image: strings.Replace(published, "36.3", "38.0", 1), server: "v1.38.0",
			args: []string{`%CONTAINER_SANDBOX_MOUNT_POINT%\swdt\kube-proxy\start.ps1`}},
		"an older one in a cluster of 1.38": {image: published, args: script, server: "v1.38.0"},
		"without a command":                 {image: published, server: "v1.36.3", want: "has no command"},
		"without a command, from a mirror":  {image: "m.example:5000/a/kube-proxy:v1.36.3-calico-hostprocess@sha256:0a", server: "v1.36.3", want: "has no command"},
		"an image of another's making":      {image: "m.example:5000/kube-proxy", server: "v1.38.0"},
		"the image for flannel":             {image: "sigwindowstools/kube-proxy:v1.33.1-flannel-hostprocess", server: "v1.33.1", want: "not published"},
		"the image for flannel of 1.32":     {image: "sigwindowstools/kube-proxy:v1.32.9-flannel-hostprocess", server: "v1.33.1"},
		"gates in the arguments": {image: "m.example/p:v1.38.1", args: []string{"kube-proxy.exe", "--feature-gates=WinOverlay=true,WinDSR=true"},
			server: "v1.38.1", want: "WinOverlay=true"},
		"a gate turned off": {image: "m.example/p:v1.34.1", args: []string{"kube-proxy.exe", "--feature-gates=WinOverlay=false"},
			server: "v1.34.1", want: "locked"},
		"gates in a script": {image: "m.example/p", args: []string{"powershell", "-File", "x.ps1"}, server: "v1.38.0",
			config: map[string]string{"x.ps1": `$a += "--feature-gates=WinDSR=true"`}, want: "WinDSR=true"},
		"gates in a configuration": {image: "m.example/p", args: []string{"x"}, server: "v1.38.0",
			config: map[string]string{"config.conf": "featureGates:\n  WinDSR: true\n"}, want: "WinDSR=true"},
		"kubeadm's mode of Linux": {image: "m.example/p:v1.37.0", args: []string{"kube-proxy.exe", "--config=/var/lib/kube-proxy/config.conf"},
			server: "v1.37.0", mode: "iptables", want: "mode: iptables"},
		"kubeadm's mode, unread": {image: "m.example/p:v1.37.0", args: []string{"kube-proxy.exe", "--kubeconfig=x", "--config-sync-period=1m"},
			server: "v1.37.0", mode: "iptables"},
		"no mode": {image: "m.example/p:v1.37.0", args: []string{"kube-proxy.exe", "--config", "x"}, server: "v1.37.0"},
	} {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy-windows"}}
		set.Spec.Template.Spec = corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows},
			Containers: []corev1.Container{{Name: "kube-proxy", Image: test.image, Args: test.args}},
			Volumes: []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-proxy"}}}},
				{Name: "b", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "files"}}}},
			}}
		dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), customLists())
		noSuchKinds(dynamic)
		c := cluster.FromClients("https://fake:6443", fake.NewClientset(set,
			configMap("kube-system", "kube-proxy", map[string]string{"config.conf": "mode: " + test.mode + "\n"}),
			configMap("kube-system", "files", test.config)), dynamic)
		found, err := c.CNI(t.Context())
		if err != nil || len(found.KubeProxies) != 1 {
			t.Fatalf("%s: %+v, %v", name, found, err)
		}
		var texts []string
		for _, f := range found.KubeProxies[0].Faults(test.server) {
			texts = append(texts, f.What+" ("+f.Evidence+")")
		}
		got := strings.Join(texts, "; ")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
