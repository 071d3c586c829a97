package podnetwork_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Manifests in the shape of Antrea's, with the objects that swdt treats in a special way.
const (
	antreaLinux = `apiVersion: v1
kind: ServiceAccount
metadata: {name: antrea-agent, namespace: kube-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: antrea-config, namespace: kube-system}
data:
  antrea-agent.conf: |
    # Tunnels between nodes.
    tunnelType: "vxlan"
    trafficEncryptionMode: "none"
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: antrea-agent, namespace: kube-system}
spec:
  selector: {matchLabels: {component: antrea-agent}}
  template:
    metadata: {labels: {component: antrea-agent}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      containers: [{name: antrea-agent, image: 'antrea/antrea-agent-ubuntu:v2.7.0'}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: antrea-controller, namespace: kube-system}
spec:
  selector: {matchLabels: {component: antrea-controller}}
  template:
    metadata: {labels: {component: antrea-controller}}
    spec: {containers: [{name: antrea-controller, image: 'antrea/antrea-controller-ubuntu:v2.7.0'}]}
`
	antreaForWindows = `apiVersion: v1
kind: ConfigMap
metadata: {name: antrea-agent-windows, namespace: kube-system}
data: {Run-AntreaAgent.ps1: run}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: antrea-windows-config, namespace: kube-system}
data:
  antrea-agent.conf: |
    # Names of features.
    featureGates:

    #tunnelType: geneve
    #kubeAPIServerOverride: ""

    antreaProxy:
      # Replaces kube-proxy.
      proxyAll: false
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: antrea-agent-windows, namespace: kube-system}
spec:
  selector: {matchLabels: {component: antrea-agent}}
  template:
    metadata: {labels: {component: antrea-agent}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      hostNetwork: true
      securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\SYSTEM'}}
      containers: [{name: antrea-agent, image: 'antrea/antrea-windows:v2.7.0'}]
`
	antreaSettings = `tunnelType: vxlan
kubeAPIServerOverride: 10.0.0.1:6443
# Names of features.
featureGates:
#tunnelType: geneve
#kubeAPIServerOverride: ""
antreaProxy:
  # Replaces kube-proxy.
  proxyAll: true
`
)

// antreaWorld is an API server in memory, and options with the manifests as files.
type antreaWorld struct {
	t      *testing.T
	server *apiserver.Cluster
	c      *cluster.Cluster
	o      podnetwork.Options
	folder string
}

func newAntreaWorld(t *testing.T) *antreaWorld {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	w := &antreaWorld{t: t, server: server, folder: t.TempDir()}
	file := filepath.Join(w.folder, "admin.conf")
	if err := server.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	if w.c, err = cluster.Open(cluster.Options{Kubeconfig: file}); err != nil {
		t.Fatal(err)
	}
	w.o = podnetwork.Options{Settings: cni.Settings{Network: cni.Antrea, APIServer: "10.0.0.1:6443"}, NoWait: true,
		Wait: time.Second, Store: artifact.Options{Cache: t.TempDir()}}
	w.o.Manifests = []podnetwork.Manifest{{Source: w.file("antrea.yml", antreaLinux)},
		{Source: w.file("antrea-windows.yml", antreaForWindows)}}
	return w
}

func (w *antreaWorld) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *antreaWorld) plant(manifests string) {
	w.t.Helper()
	if err := w.server.Plant(manifests); err != nil {
		w.t.Fatal(err)
	}
}

// install runs an installation and compares the states of its steps.
func (w *antreaWorld) install(o podnetwork.Options, want map[string]plan.State) podnetwork.Report {
	w.t.Helper()
	report, err := podnetwork.Install(w.t.Context(), w.c, o, ui.Discard{})
	if diff := cmp.Diff(want, states(report)); err != nil || diff != "" {
		w.t.Errorf("%v, steps (-want +got):\n%s", err, diff)
	}
	return report
}

// settings returns the settings of Antrea's agents on Windows.
func (w *antreaWorld) settings() string {
	w.t.Helper()
	m, err := w.c.Clientset().CoreV1().ConfigMaps("kube-system").Get(w.t.Context(), "antrea-windows-config",
		metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return m.Data["antrea-agent.conf"]
}

func both(s plan.State) map[string]plan.State {
	return map[string]plan.State{"antrea": s, "antrea for Windows": s}
}

func TestAntrea(t *testing.T) {
	w := newAntreaWorld(t)
	dry := w.o
	dry.DryRun = true
	report := w.install(dry, both(plan.Skipped))
	if detail := report.Steps[1].Detail; !strings.Contains(detail, "kubeAPIServerOverride: 10.0.0.1:6443") {
		t.Errorf("the dry run does not show the address:\n%s", detail)
	}
	if found, err := w.c.CNI(t.Context()); err != nil || found.Antrea != nil {
		t.Fatalf("the dry run installed %+v, %v", found.Antrea, err)
	}

	w.install(w.o, both(plan.Changed))
	if diff := cmp.Diff(antreaSettings, w.settings()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	found, err := w.c.CNI(t.Context())
	want := cluster.CNI{Antrea: &cluster.Antrea{WindowsDaemonSets: []string{"kube-system/antrea-agent-windows"},
		Configured: true, APIServer: "10.0.0.1:6443", ProxyAll: true, Tunnel: "vxlan", LinuxTunnel: "vxlan",
		LinuxEncryption: "none"}}
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	w.install(w.o, both(plan.OK))

	moved := w.o
	moved.Manifests, moved.Settings.APIServer = nil, "cp.example:6443" // the manifests are not needed again
	report = w.install(moved, map[string]plan.State{"antrea": plan.OK, "antrea for Windows": plan.Changed})
	if !strings.Contains(report.Steps[1].Message, "rollout restart daemonset antrea-agent-windows") {
		t.Errorf("the message is %q", report.Steps[1].Message)
	}
	moved.Settings.APIServer = "" // the address stays without the flag
	w.install(moved, both(plan.OK))
	if !strings.Contains(w.settings(), "kubeAPIServerOverride: cp.example:6443\n") {
		t.Errorf("the address is not kept:\n%s", w.settings())
	}

	removal := podnetwork.RemoveOptions{Network: cni.Antrea, Wait: time.Minute}
	if _, err := podnetwork.Remove(t.Context(), w.c, removal, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	if found, err = w.c.CNI(t.Context()); err != nil || found.Antrea != nil {
		t.Errorf("left of Antrea: %+v, %v", found.Antrea, err)
	}
}

// swdt completes an Antrea of others with the manifest for Windows in Antrea's version, and changes
// nothing of Linux.
func TestAntreaOfOthers(t *testing.T) {
	w := newAntreaWorld(t)
	w.plant(strings.ReplaceAll(antreaLinux, "v2.7.0", "v2.6.1"))
	released := w.o
	released.Manifests = nil
	_, err := podnetwork.Install(t.Context(), w.c, released, ui.Discard{})
	var unverified *podnetwork.UnverifiedError
	const url = "https://github.com/antrea-io/antrea/releases/download/v2.6.1/antrea-windows-with-ovs.yml"
	if !errors.As(err, &unverified) || unverified.Source != url || len(unverified.More) > 0 {
		t.Errorf("without a hash: %v, want only %s", err, url)
	}
	status, err := podnetwork.Look(t.Context(), w.c, podnetwork.Options{Settings: w.o.Settings}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{status.Network, status.Installed, string(status.Settings[0].State), string(status.Settings[1].State)}
	if diff := cmp.Diff([]string{"antrea", "others", "ok", "skipped"}, got); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}

	o := w.o
	o.Manifests = o.Manifests[1:]
	w.install(o, map[string]plan.State{"antrea": plan.OK, "antrea for Windows": plan.Changed})
	w.install(o, both(plan.OK))
	sets := w.c.Clientset().AppsV1().DaemonSets("kube-system")
	agent, err := sets.Get(t.Context(), "antrea-agent", metav1.GetOptions{})
	if err != nil || agent.Spec.Template.Spec.Containers[0].Image != "antrea/antrea-agent-ubuntu:v2.6.1" {
		t.Errorf("the agent on Linux has changed: %+v, %v", agent, err)
	}
	if _, err := podnetwork.Remove(t.Context(), w.c, podnetwork.RemoveOptions{Network: cni.Antrea, Wait: time.Minute},
		ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	found, err := w.c.CNI(t.Context())
	if diff := cmp.Diff(&cluster.Antrea{}, found.Antrea); err != nil || diff != "" {
		t.Errorf("%v, left of Antrea (-want +got):\n%s", err, diff)
	}
}

// An installation that cannot work ends before it changes anything.
func TestAntreaThatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		linux, windows string // a change of the manifests: old and new text, separated by →
		want           string
	}{
		"no part for Windows": {windows: "DaemonSet→StatefulSet",
			want: "it has no DaemonSet antrea-agent-windows; Antrea has it in a second manifest, antrea-windows-with-ovs.yml"},
		"no part for Linux": {linux: "kind: DaemonSet→kind: StatefulSet", want: "it has no DaemonSet antrea-agent of Antrea"},
		"no settings": {windows: "antrea-windows-config→antrea-windows-config-x",
			want: "no ConfigMap antrea-windows-config"},
		"for Docker": {windows: "hostProcess: true→hostProcess: false", want: "is for Docker"},
		"encryption": {linux: `trafficEncryptionMode: "none"→trafficEncryptionMode: wireGuard`,
			want: "Antrea encrypts the traffic between nodes (wireGuard)"},
		"settings that are no YAML": {windows: "featureGates:→featureGates: [", want: "read antrea-agent.conf in ConfigMap " +
			"kube-system/antrea-windows-config"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAntreaWorld(t)
			w.file("antrea.yml", replaced(antreaLinux, c.linux))
			w.file("antrea-windows.yml", replaced(antreaForWindows, c.windows))
			report, err := podnetwork.Install(t.Context(), w.c, w.o, ui.Discard{})
			if err == nil || !strings.Contains(err.Error(), c.want) || report.Result != "failed" {
				t.Errorf("%v, want %q", err, c.want)
			}
			sets, err := w.c.Clientset().AppsV1().DaemonSets("kube-system").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range sets.Items {
				if strings.HasPrefix(d.Name, "antrea") {
					t.Errorf("the installation made %s", d.Name)
				}
			}
		})
	}
}

// replaced returns a text with a replacement, such as old→new; "" replaces nothing.
func replaced(text, change string) string {
	before, after, _ := strings.Cut(change, "→")
	if before == "" {
		return text
	}
	return strings.ReplaceAll(text, before, after)
}

// Without a hash of the user, no manifest of Antrea is downloaded.
func TestAntreaNeedsBothHashes(t *testing.T) {
	w := newAntreaWorld(t)
	w.o.Manifests = nil
	_, err := podnetwork.Install(t.Context(), w.c, w.o, ui.Discard{})
	for _, want := range []string{"/v2.7.0/antrea.yml", "/v2.7.0/antrea-windows-with-ovs.yml", "--sha256", "--manifest"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	w.o.SHA256 = strings.Repeat("a", 64)
	_, err = podnetwork.Install(t.Context(), w.c, w.o, ui.Discard{})
	var unverified *podnetwork.UnverifiedError
	if !errors.As(err, &unverified) || !strings.HasSuffix(unverified.Source, "antrea-windows-with-ovs.yml") {
		t.Errorf("with one hash: %v", err)
	}
}

// Each condition of Antrea has the reason why it does not hold.
func TestConditionsOfAntrea(t *testing.T) {
	w := newAntreaWorld(t)
	w.plant("apiVersion: v1\nkind: Node\nmetadata: {name: win-1, labels: {kubernetes.io/os: windows}}\n")
	w.install(w.o, both(plan.Changed))
	look := func() map[string]string {
		status, err := podnetwork.Look(t.Context(), w.c, podnetwork.Options{Settings: w.o.Settings}, ui.Discard{})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, c := range status.Conditions {
			all[c.Name] = c.Message
		}
		return all
	}
	want := map[string]string{
		"Antrea's controller": "its controller has not seen the Deployment yet",
		"antrea-agent":        "0 of 0 pods are Ready",
		"pod addresses of Windows nodes": "Node win-1 has no podCIDR; does kube-controller-manager run with " +
			"--allocate-node-cidrs and --cluster-cidr?",
		"antrea-agent-windows on Windows nodes": "it has no pod on win-1",
	}
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	node, err := w.c.Clientset().CoreV1().Nodes().Get(t.Context(), "win-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Spec.PodCIDR = "10.244.1.0/24"
	if _, err := w.c.Clientset().CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if message := look()["pod addresses of Windows nodes"]; message != "" {
		t.Errorf("with addresses: %s", message)
	}
}

// Installs Antrea on a real API server, which knows field managers and validates objects, with a stand-in
// for the kubelets.
func TestAntreaOnARealAPIServer(t *testing.T) {
	c, _ := lab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	makeNode(ctx, t, c, "linux-1", "linux", "6.1.0")
	makeNode(ctx, t, c, "win-1", "windows", "10.0.20348.2849 (amd64)")
	awaitPodCIDR(ctx, t, c, "linux-1", "win-1")
	runKubelets(t, c)
	w := &antreaWorld{t: t, c: c, folder: t.TempDir()}
	w.o = podnetwork.Options{Settings: cni.Settings{Network: cni.Antrea, APIServer: "10.0.0.1:6443"},
		Wait: 3 * time.Minute, Store: artifact.Options{Cache: t.TempDir()}}
	w.o.Manifests = []podnetwork.Manifest{{Source: w.file("antrea.yml", antreaLinux)},
		{Source: w.file("antrea-windows.yml", antreaForWindows)}}

	all := func(s plan.State) map[string]plan.State {
		states := both(s)
		states["ready"] = s
		return states
	}
	w.install(w.o, all(plan.Changed))
	w.install(w.o, all(plan.OK))
	if diff := cmp.Diff(antreaSettings, w.settings()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	removal := podnetwork.RemoveOptions{Network: cni.Antrea, Wait: time.Minute}
	if _, err := podnetwork.Remove(ctx, c, removal, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	if found, err := c.CNI(ctx); err != nil || found.Antrea != nil {
		t.Fatalf("left of Antrea: %+v, %v", found.Antrea, err)
	}
	w.settingsOfOthers(ctx)
}

// awaitPodCIDR waits until kube-controller-manager has given the nodes their addresses of pods. The API server refuses
// another writer's then.
func awaitPodCIDR(ctx context.Context, t *testing.T, c *cluster.Cluster, names ...string) {
	t.Helper()
	for _, name := range names {
		err := wait.Condition{Name: "the podCIDR of Node " + name, Interval: 100 * time.Millisecond, Limit: time.Minute,
			Look: func(ctx context.Context) error {
				n, err := c.Clientset().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
				if err == nil && n.Spec.PodCIDR == "" {
					err = errors.New("it has none")
				}
				return err
			}}.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// settingsOfOthers checks that the settings of another manager are a conflict, unless --force takes them.
func (w *antreaWorld) settingsOfOthers(ctx context.Context) {
	w.t.Helper()
	objects, err := cni.Parse("antrea", []byte(antreaLinux+"---\n"+antreaForWindows))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		kind := gvr(o.GroupVersionKind().Group, o.GroupVersionKind().Version, strings.ToLower(o.GetKind())+"s")
		if _, err := w.c.Dynamic().Resource(kind).Namespace(o.GetNamespace()).Create(ctx, o,
			metav1.CreateOptions{FieldManager: "their-tool"}); err != nil {
			w.t.Fatal(err)
		}
	}
	o := w.o
	o.Manifests = nil // Antrea is there, for both systems
	_, err = podnetwork.Install(ctx, w.c, o, ui.Discard{})
	var conflict *cni.ConflictError
	if !errors.As(err, &conflict) || !strings.Contains(err.Error(), "swdt network install antrea --force") {
		w.t.Errorf("got %v, want a conflict", err)
	}
	o.Force = true
	if _, err = podnetwork.Install(ctx, w.c, o, ui.Discard{}); err != nil {
		w.t.Error(err)
	}
	if diff := cmp.Diff(antreaSettings, w.settings()); diff != "" {
		w.t.Errorf("settings with --force (-want +got):\n%s", diff)
	}
}
