package podnetwork_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// flannelForLinux is a manifest with the names of flannel's.
const flannelForLinux = `apiVersion: v1
kind: ConfigMap
metadata: {name: kube-flannel-cfg, namespace: kube-flannel}
data: {net-conf.json: '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}'}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-flannel-ds, namespace: kube-flannel}
spec:
  selector: {matchLabels: {app: flannel}}
  template:
    metadata: {labels: {app: flannel}}
    spec: {containers: [{name: kube-flannel, image: 'ghcr.io/flannel-io/flannel:v0.28.10'}]}
`

// proxyWorld is an API server in memory, and options that install flannel for a user who runs it on Windows.
type proxyWorld struct {
	t      *testing.T
	server *apiserver.Cluster
	c      *cluster.Cluster
	o      podnetwork.Options
}

func newProxyWorld(t *testing.T) *proxyWorld {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	folder := t.TempDir()
	kubeconfig, manifest := filepath.Join(folder, "admin.conf"), filepath.Join(folder, "flannel.yml")
	if err := errors.Join(server.WriteKubeconfig(kubeconfig), os.WriteFile(manifest, []byte(flannelForLinux), 0o600)); err != nil {
		t.Fatal(err)
	}
	w := &proxyWorld{t: t, server: server, o: podnetwork.Options{NoWait: true, Wait: time.Second, NoWindowsFlannel: true,
		Settings: cni.Settings{Network: cni.Flannel, PodCIDR: "10.244.0.0/16", ServiceCIDRs: []string{"10.96.0.0/12"},
			APIServer: "10.0.0.1:6443"},
		Manifests: []podnetwork.Manifest{{Source: manifest}}, Store: artifact.Options{Cache: t.TempDir()}}}
	if w.c, err = cluster.Open(cluster.Options{Kubeconfig: kubeconfig}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *proxyWorld) plant(objects string) {
	w.t.Helper()
	if err := w.server.Plant(objects); err != nil {
		w.t.Fatal(err)
	}
}

// kubeProxyStep returns the step of kube-proxy, as an installation or a status reports it.
func kubeProxyStep(t *testing.T, steps []plan.StepResult) plan.StepResult {
	t.Helper()
	for _, s := range steps {
		if s.Name == "kube-proxy" {
			return s
		}
	}
	t.Fatalf("there is no step kube-proxy: %+v", steps)
	return plan.StepResult{}
}

func brokenProxy(labels, name, container string) string {
	return `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ` + name + `, namespace: kube-system, labels: {k8s-app: kube-proxy` + labels + `}}
spec:
  selector: {matchLabels: {k8s-app: kube-proxy-windows}}
  template:
    metadata: {labels: {k8s-app: kube-proxy-windows}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers: [{name: kube-proxy, ` + container + `}]
`
}

// preflight returns what `swdt join --preflight` and `swdt doctor` find about kube-proxy.
func (w *proxyWorld) preflight() []finding.Finding {
	w.t.Helper()
	network, err := w.c.CNI(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	version, err := w.c.Version(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	found, err := preflight.Judge("kube-proxy", preflight.Gathered{CNI: network, APIServer: version})
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(f finding.Finding) bool { // the images of this test are of several versions
		return strings.Contains(f.What, "another version")
	})
}

// A kube-proxy that does not run is found by status, with the remedy; the remedy mends it, and status finds it no more.
func TestABrokenKubeProxyIsMendedByItsRemedy(t *testing.T) {
	const published = `image: 'sigwindowstools/kube-proxy:v1.36.3-calico-hostprocess'`
	for name, test := range map[string]struct {
		objects string
		found   string            // in the status; "" if an installation mends it unasked
		remedy  string            // the command
		mend    func(*proxyWorld) // what the command does; nil: an installation with these options
		force   bool
	}{
		"of an earlier swdt": {objects: brokenProxy(", swdt.dev/network: flannel", "kube-proxy-windows", published)},
		"of an earlier swdt, for flannel": {objects: brokenProxy(", swdt.dev/network: flannel", "kube-proxy-windows",
			`image: 'sigwindowstools/kube-proxy:v1.36.3-flannel-hostprocess'`)},
		"of others, without a command": {objects: brokenProxy("", "kube-proxy-windows", published), found: "it has no command",
			remedy: "`swdt network install flannel --force`", force: true},
		"of others, with the dead image": {objects: brokenProxy("", "kube-proxy-windows",
			`image: 'sigwindowstools/kube-proxy:v1.36.3-flannel-hostprocess'`), found: "not published",
			remedy: "`swdt network install flannel --force`", force: true},
		"of others, with gates": {objects: brokenProxy("", "kube-proxy-windows",
			`image: 'm.example/kube-proxy:v1.38.0', args: ['--feature-gates=WinDSR=true']`), found: "WinDSR=true",
			remedy: "`swdt network install flannel --force`", force: true},
		"of others, with the mode of Linux": {objects: brokenProxy("", "kube-proxy-windows",
			`image: 'm.example/kube-proxy:v1.37.0', args: ['--config=/var/lib/kube-proxy/config.conf']`) +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-proxy, namespace: kube-system}\ndata: {config.conf: 'mode: iptables'}\n",
			found: "mode: iptables", remedy: "`swdt network install flannel --force`", force: true},
		"of others, of another name": {objects: brokenProxy("", "kube-proxy-win2022", published), found: "it has no command",
			remedy: "`kubectl delete daemonset kube-proxy-win2022 -n kube-system`",
			mend: func(w *proxyWorld) {
				err := w.c.Clientset().AppsV1().DaemonSets("kube-system").Delete(w.t.Context(), "kube-proxy-win2022", metav1.DeleteOptions{})
				if err != nil {
					w.t.Fatal(err)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newProxyWorld(t)
			w.plant(flannelForLinux + "---\n" + test.objects)
			w.o.Manifests = nil // flannel is installed
			status, err := podnetwork.Look(t.Context(), w.c, w.o, ui.Discard{})
			if err != nil {
				t.Fatal(err)
			}
			step := kubeProxyStep(t, status.Settings)
			if test.found == "" {
				if step.State != plan.Skipped {
					t.Fatalf("status %+v", step)
				}
			} else if step.State != plan.Failed || !strings.Contains(step.Message, test.found) || !strings.Contains(step.Message, test.remedy) {
				t.Fatalf("status %+v, want %q and %q", step, test.found, test.remedy)
			}
			if before := w.preflight(); len(before) != 1 || !strings.Contains(before[0].Evidence+before[0].What, test.found) ||
				!strings.Contains(before[0].Remedy, cmp.Or(test.remedy, "`swdt network install flannel`")) {
				t.Errorf("preflight and doctor find %+v", before)
			}
			if test.found != "" {
				var broken *cni.KubeProxyError
				if _, err := podnetwork.Install(t.Context(), w.c, w.o, ui.Discard{}); !errors.As(err, &broken) {
					t.Errorf("an installation without the remedy: %v", err)
				}
			}
			if test.mend != nil {
				test.mend(w)
			}
			o := w.o
			o.Force = test.force || test.found == ""
			if _, err := podnetwork.Install(t.Context(), w.c, o, ui.Discard{}); err != nil {
				t.Fatal(err)
			}
			status, err = podnetwork.Look(t.Context(), w.c, w.o, ui.Discard{})
			if err != nil {
				t.Fatal(err)
			}
			if step := kubeProxyStep(t, status.Settings); step.State != plan.OK {
				t.Errorf("after the remedy: %+v", step)
			}
			if after := w.preflight(); len(after) > 0 {
				t.Errorf("after the remedy, preflight and doctor find %+v", after)
			}
			found, err := w.c.CNI(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range found.KubeProxies {
				if faults := k.Faults("v1.38.0"); len(faults) > 0 {
					t.Errorf("after the remedy: %+v", faults)
				}
			}
		})
	}
}

// flannel is refused before anything is changed, unless something runs it on Windows.
func TestFlannelIsRefusedWithoutAnythingThatRunsItOnWindows(t *testing.T) {
	windows := func(labels string) string {
		return `---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-flannel-ds-windows-amd64, namespace: kube-system, labels: {app: flannel` + labels + `}}
spec:
  selector: {matchLabels: {app: flannel}}
  template:
    metadata: {labels: {app: flannel}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers: [{name: kube-flannel, image: 'm.example/flannel:1'}]
`
	}
	for name, test := range map[string]struct {
		plant  string
		change func(*podnetwork.Options)
		want   string // "" if it is installed
	}{
		"a new cluster":       {"", func(*podnetwork.Options) {}, "no image of flannel for Windows is published"},
		"the user runs it":    {"", func(o *podnetwork.Options) { o.NoWindowsFlannel = true }, ""},
		"a DaemonSet of ours": {flannelForLinux + windows(", swdt.dev/network: flannel"), func(*podnetwork.Options) {}, "`kubectl delete daemonset kube-flannel-ds-windows-amd64 -n kube-system`"},
		"one of others":       {flannelForLinux + windows(""), func(*podnetwork.Options) {}, ""},
	} {
		w := newProxyWorld(t)
		w.o.NoWindowsFlannel, w.o.Force = false, true
		test.change(&w.o)
		if test.plant != "" {
			w.plant(test.plant)
		}
		report, err := podnetwork.Install(t.Context(), w.c, w.o, ui.Discard{})
		var none *cni.NoWindowsFlannelError
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (!errors.As(err, &none) || !strings.Contains(err.Error(), test.want) || len(report.Steps) > 0):
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
}
