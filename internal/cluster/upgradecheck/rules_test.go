package upgradecheck_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// onNode returns the findings for the settings that read adds on the node win-1, as "rule effect: what".
func onNode(t *testing.T, kubernetes string, nodes []upgradecheck.Node, server string,
	read func(r *upgradecheck.Reader, p upgradecheck.Place)) []string {
	t.Helper()
	table := load(t)
	target, err := upgradecheck.ParseTarget(table, kubernetes, "", "")
	if err != nil {
		t.Fatal(err)
	}
	r := upgradecheck.NewReader(table)
	r.Nodes, r.Server = nodes, server
	if read != nil {
		read(r, upgradecheck.Place{Node: "win-1", Field: "service"})
	}
	var lines []string
	for _, f := range upgradecheck.Check(table, target, r.Facts) {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", f.Severity, f.Effect, f.Rule, f.What))
	}
	return lines
}

func TestCommandLinesOfServices(t *testing.T) {
	for name, test := range map[string]struct {
		program kubesettings.Program
		line    string
		to      string
		want    []string
	}{
		"a removed gate": {kubesettings.KubeProxy, `C:\k\kube-proxy.exe --windows-service --feature-gates="WinDSR=true" --enable-dsr=true`, "1.38",
			[]string{"error exits gate-unknown: kube-proxy ends: Kubernetes 1.38 removed the feature gate WinDSR"}},
		"the same, one version earlier": {kubesettings.KubeProxy, `C:\k\kube-proxy.exe --feature-gates WinDSR=true`, "1.37",
			[]string{"info deprecated gate-going: kube-proxy 1.38 will not know the feature gate WinDSR, and end"}},
		"beside --config": {kubesettings.KubeProxy, `kube-proxy.exe --config=C:\k\kube-proxy.yaml --feature-gates=WinDSR=true`, "1.38",
			[]string{"info ignored gate-ignored: kube-proxy does not read the feature gate WinDSR: the file of --config replaces it"}},
		"kubelet knows no unknown gate either": {kubesettings.Kubelet, `C:\k\kubelet.exe --feature-gates=NodeSwap=true,NodeLogQuery=true`, "1.38",
			[]string{"error exits gate-unknown: kubelet ends: Kubernetes 1.38 removed the feature gate NodeSwap"}},
		"a locked gate": {kubesettings.Kubelet, `C:\k\kubelet.exe --feature-gates=NodeLogQuery=false`, "1.36",
			[]string{"error exits gate-locked: kubelet ends: the feature gate NodeLogQuery is locked to true since 1.36"}},
		"a gate of a later version": {kubesettings.Kubelet, `C:\k\kubelet.exe --feature-gates=AtomicFIFO=true`, "1.35",
			[]string{"error exits gate-unknown: kubelet ends: Kubernetes knows the feature gate AtomicFIFO only since 1.36"}},
		"no such flag": {kubesettings.KubeProxy, `kube-proxy.exe --enable-drs=true`, "1.36",
			[]string{"error exits flag-unknown: kube-proxy ends: kube-proxy 1.36 has no flag --enable-drs"}},
		"a mode of Linux": {kubesettings.KubeProxy, `kube-proxy.exe --proxy-mode=iptables`, "1.36",
			[]string{"error exits proxy-mode: kube-proxy ends: Windows has only the mode kernelspace"}},
		"the flags of a log runner": {kubesettings.Kubelet, `"C:\k\kube-log-runner.exe" --log-file=C:\l.log C:\k\kubelet.exe --config=x -v=2 --windows-service`, "1.38", nil},
		"what swdt registers": {kubesettings.KubeProxy, `C:\k\kube-proxy.exe --windows-service --v=4 --proxy-mode=kernelspace --hostname-override=win-1 ` +
			`--kubeconfig=C:\k\kube-proxy.kubeconfig --network-name=Calico --enable-dsr=true --source-vip=10.0.0.1`, "1.38", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := onNode(t, test.to, nil, "", func(r *upgradecheck.Reader, p upgradecheck.Place) { r.CommandLine(test.program, test.line, p) })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestConfigurationFiles(t *testing.T) {
	for name, test := range map[string]struct {
		to, text string
		form     upgradecheck.Form
		want     []string
	}{
		"a field of no version": {"1.36", "maxPods: 3\nmaxPod: 4\n", upgradecheck.ConfigFile,
			[]string{"warning ignored field-unknown: kubelet 1.36 has no field maxPod in KubeletConfiguration, and ignores it"}},
		"in a drop-in": {"1.36", "logging: {verbosty: 4}\n", upgradecheck.DropIn,
			[]string{"warning ignored field-unknown: kubelet 1.36 has no field logging.verbosty in KubeletConfiguration, and ignores it without a line in its log"}},
		"a field of a later version": {"1.36", "clientCertificateKeyAlgorithm: RSA\n", upgradecheck.ConfigFile,
			[]string{"warning ignored field-unknown: kubelet 1.36 has no field clientCertificateKeyAlgorithm in KubeletConfiguration, and ignores it"}},
		"fields that Windows refuses": {"1.37", "singleProcessOOMKill: false\nuserNamespaces: {idsPerPod: 65536}\ndefaultPodSysctls: []\n", upgradecheck.ConfigFile,
			[]string{"error exits field-not-on-windows: kubelet ends: the field singleProcessOOMKill is not supported on Windows",
				"error exits field-not-on-windows: kubelet ends: the field userNamespaces is not supported on Windows"}},
		"a policy that takes effect": {"1.38", "cpuManagerPolicy: static\nmemoryManagerPolicy: None\n", upgradecheck.ConfigFile,
			[]string{"warning changed cpu-memory-affinity: kubelet's cpuManagerPolicy takes effect on Windows since 1.38, which turns " +
				"WindowsCPUAndMemoryAffinity on; without reserved CPUs or memory, kubelet ends with it"}},
		"the same with the gate off": {"1.38", "cpuManagerPolicy: static\nfeatureGates: {WindowsCPUAndMemoryAffinity: false}\n", upgradecheck.ConfigFile, nil},
		"a gate without what it needs": {"1.36", "featureGates: {WindowsGracefulNodeShutdown: true, GracefulNodeShutdown: false}\n", upgradecheck.ConfigFile,
			[]string{"error exits gate-needs: kubelet ends: the feature gate WindowsGracefulNodeShutdown needs GracefulNodeShutdown, which is off"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := onNode(t, test.to, nil, "", func(r *upgradecheck.Reader, p upgradecheck.Place) {
				r.Config(kubesettings.Kubelet, []byte(test.text), test.form, p)
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestKubeadmFlags(t *testing.T) {
	for to, want := range map[string][]string{
		"1.34": {"info deprecated flag-going: kubelet 1.35 will not have the flag --pod-infra-container-image, and end"},
		"1.35": {"warning exits flag-unknown: kubelet ends: Kubernetes 1.35 removed the flag --pod-infra-container-image"},
		"1.36": {"error exits flag-unknown: kubelet ends: Kubernetes 1.35 removed the flag --pod-infra-container-image"},
	} {
		got := onNode(t, to, nil, "", func(r *upgradecheck.Reader, p upgradecheck.Place) {
			p.File = `C:\var\lib\kubelet\kubeadm-flags.env`
			r.KubeadmFlags("KUBELET_KUBEADM_ARGS=\"--node-ip=10.0.0.4 --pod-infra-container-image=registry.k8s.io/pause:3.10\"\n", p)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("to %s: -want +got:\n%s", to, diff)
		}
	}
}

func TestVersions(t *testing.T) {
	node := func(kubelet, containerd string) []upgradecheck.Node {
		return []upgradecheck.Node{{Name: "win-1", Kubelet: kubelet, Containerd: containerd}}
	}
	for name, test := range map[string]struct {
		to, server string
		nodes      []upgradecheck.Node
		want       []string
	}{
		"the next version":                   {"1.36", "v1.35.4", node("v1.35.4", "2.2.1"), nil},
		"the cluster's version":              {"1.36.3", "v1.36.3", node("v1.35.4", "2.2.1"), nil},
		"two versions at a time":             {"1.36", "v1.36.0", node("v1.34.9", "2.2.1"), []string{"warning refused version-skew: kubeadm is 2 minor versions ahead of the node"}},
		"before the cluster, which is first": {"1.36", "v1.34.9", node("v1.35.0", "2.2.1"), nil},
		"too old for the cluster":            {"1.33", "v1.37.0", node("v1.33.0", "2.2.1"), []string{"error refused version-skew: kubelet is 4 minor versions behind the API server", "warning refused version-skew: kubeadm is 4 minor versions behind the API server"}},
		"back":                               {"1.35", "v1.36.0", node("v1.36.0", "2.2.1"), []string{"error refused version-skew: kubeadm is 1 minor version behind the node", "warning refused version-skew: kubeadm is 1 minor version behind the API server"}},
		"an old containerd":                  {"1.36", "v1.36.0", node("v1.35.0", "1.7.28"), []string{"warning unsupported containerd-version: containerd's project pairs Kubernetes 1.36 with containerd 2.2 and newer; before 2.0 it lacks RuntimeConfig, which kubelet asks for, and a later kubelet demands"}},
		"an unknown node":                    {"1.36", "", node("", ""), nil},
		"kubelet of no known form":           {"1.36", "v1.36.0", node("unknown", "unknown"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, onNode(t, test.to, test.nodes, test.server, nil)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReleasesOfWindows(t *testing.T) {
	table := load(t)
	target, err := upgradecheck.ParseTarget(table, "", "", "ltsc2025")
	if err != nil {
		t.Fatal(err)
	}
	got := checkFiles(t, target, table, map[string]string{
		"calico.yaml": `kind: DaemonSet
metadata: {name: calico-node-windows, namespace: calico-system}
spec: {template: {spec: {os: {name: windows}, containers: [{name: node, image: quay.io/calico/node-windows:v3.32.0}]}}}
---
kind: Deployment
metadata: {name: iis}
spec: {template: {spec: {nodeSelector: {node.kubernetes.io/windows-build: 10.0.20348}, containers: [{name: iis, image: example.com/iis:ltsc2022}]}}}
`,
		"config.toml": "version = 3\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\n  sandbox = 'registry.k8s.io/pause:3.10'\n",
	})
	want := []string{
		"error refused: windows-build @ calico.yaml:7, Deployment iis, spec.template.spec: node.kubernetes.io/windows-build: 10.0.20348",
		"warning unsupported: calico-windows-version @ calico.yaml:3, DaemonSet calico-system/calico-node-windows, spec.template.spec: quay.io/calico/node-windows:v3.32.0",
		"warning refused: sandbox-image @ config.toml:3: registry.k8s.io/pause:3.10",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseTarget(t *testing.T) {
	table := load(t)
	for _, test := range []struct{ kubernetes, containerd, windows, want string }{
		{"1.39", "", "", "kubernetes 1.39: this swdt knows 1.33 to 1.38"},
		{"1.32.9", "", "", "kubernetes 1.32.9: this swdt knows 1.33 to 1.38"},
		{"next", "", "", `kubernetes "next" is no version: write one such as 1.38`},
		{"", "2.5", "", "containerd 2.5: this swdt knows 1.6 to 2.4"},
		{"", "", "2025", `windows "2025" is no release: use one of ltsc2019, ltsc2022, ltsc2025`},
	} {
		_, err := upgradecheck.ParseTarget(table, test.kubernetes, test.containerd, test.windows)
		var unknown *upgradecheck.UnknownVersionError
		if err == nil || err.Error() != test.want || errors.As(err, &unknown) != strings.Contains(test.want, "knows") {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// A file that names neither a node nor an object of Windows may be for Linux, whose kubelet has flags and fields that
// Windows' has not: they are notes. A flag that a version removed is an error everywhere.
func TestFilesThatMayBeForLinux(t *testing.T) {
	table := load(t)
	target, err := upgradecheck.ParseTarget(table, "1.38", "", "")
	if err != nil {
		t.Fatal(err)
	}
	got := checkFiles(t, target, table, map[string]string{
		"linux.yaml": `kind: KubeadmConfigTemplate
metadata: {name: linux}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {housekeeping-interval: 10s, cloud-config: /x}}}}}}
`,
		"config.yaml": "kind: KubeletConfiguration\nsingleProcessOOMKill: true\n",
	})
	const template = "linux.yaml:3, KubeadmConfigTemplate linux, spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs"
	want := []string{
		"error exits: flag-unknown @ " + template + ".cloud-config: --cloud-config=/x",
		"info exits: field-not-on-windows @ config.yaml:2: singleProcessOOMKill: true",
		"info exits: flag-unknown @ " + template + ".housekeeping-interval: --housekeeping-interval=10s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Command lines and configurations of a node are those of Windows, whether their place names the node or not, and so are
// pods that select Windows.
func TestSettingsOfWindowsAreErrors(t *testing.T) {
	table := load(t)
	target, err := upgradecheck.ParseTarget(table, "1.38", "", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(r *upgradecheck.Reader){
		"a command line": func(r *upgradecheck.Reader) {
			r.CommandLine(kubesettings.Kubelet, "kubelet.exe --housekeeping-interval=10s", upgradecheck.Place{})
		},
		"a configuration": func(r *upgradecheck.Reader) {
			r.Config(kubesettings.Kubelet, []byte("singleProcessOOMKill: true\n"), upgradecheck.ConfigFile,
				upgradecheck.Place{Field: "config.yaml"})
		},
		"a drop-in": func(r *upgradecheck.Reader) {
			r.Config(kubesettings.Kubelet, []byte("userNamespaces: {idsPerPod: 65536}\n"), upgradecheck.DropIn,
				upgradecheck.Place{File: `C:\k\1.conf`})
		},
		"a pod": func(r *upgradecheck.Reader) {
			r.File("pod.yaml", []byte("kind: Pod\nmetadata: {name: k}\nspec: {os: {name: windows}, containers: [{command: [kubelet.exe, "+
				"--housekeeping-interval=10s]}]}\n"))
		},
	} {
		r := upgradecheck.NewReader(table)
		read(r)
		if got := upgradecheck.Check(table, target, r.Facts); len(got) != 1 || got[0].Severity != finding.Error {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The remedy for a gate names what it was before its removal, however long ago that is.
func TestRemedyForAGateThatIsLongGone(t *testing.T) {
	table := load(t)
	for _, to := range []string{"1.36", "1.38"} {
		target, err := upgradecheck.ParseTarget(table, to, "", "")
		if err != nil {
			t.Fatal(err)
		}
		r := upgradecheck.NewReader(table)
		r.CommandLine(kubesettings.Kubelet, "kubelet.exe --feature-gates=HonorPVReclaimPolicy=true", upgradecheck.Place{Node: "win-1"})
		got := upgradecheck.Check(table, target, r.Facts)
		if len(got) != 1 || got[0].Remedy != "remove it: it is always on since 1.33" {
			t.Errorf("to %s: %+v", to, got)
		}
	}
}

// Nodes with the same setting share a finding.
func TestFindingsAreGrouped(t *testing.T) {
	table := load(t)
	target, err := upgradecheck.ParseTarget(table, "1.38", "", "")
	if err != nil {
		t.Fatal(err)
	}
	r := upgradecheck.NewReader(table)
	for _, node := range []string{"win-1", "win-2"} {
		r.CommandLine(kubesettings.KubeProxy, "kube-proxy.exe --feature-gates=WinDSR=true", upgradecheck.Place{Node: node})
	}
	got := upgradecheck.Check(table, target, r.Facts)
	if len(got) != 1 || len(got[0].Places) != 2 || got[0].Since != "1.38" ||
		got[0].Source != "https://github.com/kubernetes/kubernetes/pull/142125" {
		t.Errorf("%+v", got)
	}
}

// A file that cannot be read is named, since nothing in it was checked.
func TestTextsThatCannotBeRead(t *testing.T) {
	r := upgradecheck.NewReader(load(t))
	r.File("config.toml", []byte("# containerd\n[plugins\n"))
	r.File("template.yaml", []byte("kind: {{ .Kind }}\nx: [\n"))
	r.File("start.ps1", []byte("kube\x00let starts"))
	var got []string
	for _, u := range r.Unread {
		got = append(got, u.Place.File)
	}
	if diff := cmp.Diff([]string{"config.toml", "template.yaml", "start.ps1"}, got); diff != "" {
		t.Errorf("-want +got:\n%s\n%+v", diff, r.Unread)
	}
}
