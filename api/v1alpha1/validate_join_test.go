package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func problemsOf(n *Node) []string {
	SetDefaults(n)
	var got []string
	for _, problem := range Validate(n) {
		got = append(got, strings.TrimPrefix(problem.Field, "spec.kubernetes.")+": "+problem.What)
	}
	return got
}

func TestValidateJoin(t *testing.T) {
	n := validNode()
	n.Spec.Kubernetes = Kubernetes{
		Version: "v1.36.3",
		Containerd: Containerd{Version: "2.0.0-rc.1", Source: "https://h/c.tar.gz", SHA256: strings.Repeat("AB", 32),
			PauseImage: "registry.k8s.io/pause:3.10", LogLevel: "debug"},
		Kubelet: Kubelet{
			Source: "$HOME/kubelet.exe", ExtraArgs: map[string]string{"v": "4", "feature-gates": "A=true"},
			ConfigPatch:        map[string]any{"maxPods": 30},
			RegisterWithTaints: []string{"os=windows:NoSchedule", "x.io/y:NoExecute"},
			NodeLabels:         map[string]string{"example.com/a": "b", "empty": ""},
		},
		Join: Join{
			NodeName: "win-1", NodeIP: "10.0.0.1", ControlPlaneEndpoint: "cp:6443",
			ControlPlaneAlias: &ControlPlaneAlias{Name: "cp", IP: "10.0.0.2"}, TokenFrom: &SecretSource{Env: "T"},
			DiscoveryTokenCACertHash: "sha256:" + strings.Repeat("0", 64), IgnorePreflightErrors: []string{"all"},
		},
	}
	if got := problemsOf(n); got != nil {
		t.Errorf("a good file has problems:\n%s", strings.Join(got, "\n"))
	}
	if n.Spec.Kubernetes.Containerd.SHA256 != strings.Repeat("ab", 32) {
		t.Error("the hash is not in lower case")
	}

	n.Spec.Kubernetes = Kubernetes{
		Version: "1.36",
		Containerd: Containerd{Version: "latest", Source: "ftp://h/c", SHA256: "12", PauseImage: "Pause Image",
			LogLevel: "loud", LogFile: "log",
			CNI: ContainerdCNI{BinDirectory: "bin", ConfigDirectory: `\\server\share`}},
		Kubelet: Kubelet{
			Source: "ftp://h/k", KubeadmSource: "http:///x", LogRunnerSource: "a\tb",
			ExtraArgs:          map[string]string{"--v": "4", "a b": "", "c": "\n"},
			RegisterWithTaints: []string{"os=windows", "a:NoExecute", "a:NoExecute"},
			NodeLabels:         map[string]string{"/a": "b", "c": "d e"},
		},
		Join: Join{
			NodeName: "WIN", NodeIP: "here", ControlPlaneEndpoint: "https://cp",
			ControlPlaneAlias: &ControlPlaneAlias{Name: "c p", IP: "cp"},
			Token:             "hunter2", TokenFrom: &SecretSource{}, DiscoveryTokenCACertHash: "x",
			IgnorePreflightErrors: []string{"a b"},
		},
	}
	got := problemsOf(n)
	if strings.Contains(strings.Join(got, " "), "hunter2") {
		t.Error("the token is shown")
	}
	want := []string{
		`version: "1.36" is not a release`,
		`containerd.version: "latest" is not a release`,
		"containerd.source: has a scheme that is not understood",
		"containerd.sha256: is not a SHA-256 hash",
		"containerd.cni.binDirectory: is relative",
		"containerd.cni.configDirectory: is a network path",
		"containerd.logFile: is relative",
		`containerd.logLevel: "loud" is not a level of containerd's log`,
		`containerd.pauseImage: "Pause Image" is not an image`,
		"kubelet.source: has a scheme that is not understood",
		"kubelet.kubeadmSource: is a URL without a host or path",
		"kubelet.logRunnerSource: has a control character",
		"kubelet.extraArgs[--v]: begins with a dash",
		"kubelet.extraArgs[a b]: is not a flag's name",
		"kubelet.extraArgs[c]: has a control character",
		`kubelet.registerWithTaints[0]: "os=windows" is not a taint`,
		`kubelet.registerWithTaints[2]: a:NoExecute is there already, as spec.kubernetes.kubelet.registerWithTaints[1]`,
		"kubelet.nodeLabels[/a]: is not a label's key",
		`kubelet.nodeLabels[c]: "d e" is not a label's value`,
		`join.nodeName: "WIN" is not the name of a node`,
		`join.nodeIP: "here" is not an IP address`,
		"join.controlPlaneEndpoint: is a URL",
		`join.controlPlaneAlias.name: "c p" is not a host name`,
		`join.controlPlaneAlias.ip: "cp" is not an IP address`,
		"join.token: is not a bootstrap token",
		"join.tokenFrom: is set beside token",
		"join.tokenFrom: says neither env nor file",
		"join.discoveryTokenCACertHash: is not the hash of a CA",
		`join.ignorePreflightErrors[0]: "a b" is not a check`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
