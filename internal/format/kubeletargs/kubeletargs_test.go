package kubeletargs_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

var update = flag.Bool("update", false, "write the golden files anew")

// usual returns the wish of an ordinary join.
func usual(version string) kubeletargs.Wish {
	return kubeletargs.Wish{
		Version: version, NodeName: "win-1", LogRunner: true, PauseImage: "registry.k8s.io/pause:3.9",
		KubeadmFlags: map[string]string{
			"container-runtime-endpoint": "npipe:////./pipe/containerd-containerd",
			"pod-infra-container-image":  "registry.k8s.io/pause:3.8",
		},
	}
}

// full sets every field that every version supports.
func full(version string) kubeletargs.Wish {
	w := usual(version)
	w.NodeIP = "192.168.122.20"
	w.KubeletExe = `C:\Program Files\k\kubelet.exe`
	w.NodeLabels = map[string]string{"node.kubernetes.io/pool": "windows", "example.com/b": ""}
	w.RegisterWithTaints = []string{"os=windows:NoSchedule", "dev:NoExecute"}
	w.ExtraArgs = map[string]string{"v": "4", "max-pods": "30", "cgroups-per-qos": "true",
		"root-dir": `D:\kubelet data\`}
	return w
}

// The whole command lines, for every minor version.
func TestCommandLinesByVersion(t *testing.T) {
	var out strings.Builder
	for minor := 22; minor <= 36; minor++ {
		version := fmt.Sprintf("1.%d.3", minor)
		bare := usual("v" + version)
		bare.LogRunner, bare.KubeadmFlags, bare.PauseImage = false, nil, ""
		dropIn := usual(version)
		dropIn.ConfigDropIn = true
		for _, c := range []struct {
			name string
			wish kubeletargs.Wish
		}{{"usual", usual(version)}, {"full", full(version)}, {"no log runner, nothing of kubeadm's yet", bare},
			{"configPatch", dropIn}} {
			line, err := kubeletargs.CommandLine(c.wish)
			if err != nil {
				line = "error: " + err.Error()
			}
			fmt.Fprintf(&out, "%s, %s\n%s\n\n", version, c.name, line)
		}
	}
	path := filepath.Join("testdata", "versions.txt")
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("-want +got (go test -update):\n%s", diff)
	}
}

// flags parses a command line's flags as kubelet does.
func flags(t *testing.T, w kubeletargs.Wish) map[string]string {
	t.Helper()
	line, err := kubeletargs.CommandLine(w)
	if err != nil {
		t.Fatal(err)
	}
	words := commandline.Split(line)
	at := slices.IndexFunc(words, func(word string) bool { return strings.HasSuffix(word, "kubelet.exe") })
	read := map[string]string{}
	for _, word := range words[at+1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if _, twice := read[name]; twice {
			t.Errorf("--%s is there twice: %s", name, line)
		}
		read[name] = value
	}
	return read
}

func TestThresholds(t *testing.T) {
	for _, c := range []struct {
		flag        string
		last, first int // minor versions: the last with the flag, the first without
		wish        func(string) kubeletargs.Wish
	}{
		{"network-plugin", 23, 24, usual},
		{"image-pull-progress-deadline", 23, 24, usual},
		{"container-runtime", 23, 24, usual}, // supported until 1.26, required until 1.23
		{"log-dir", 25, 26, func(version string) kubeletargs.Wish {
			w := usual(version)
			w.LogRunner = false
			return w
		}},
		{"logtostderr", 25, 26, func(version string) kubeletargs.Wish {
			w := usual(version)
			w.LogRunner = false
			return w
		}},
		{"pod-infra-container-image", 34, 35, usual}, // kubeadm's own is kept if kubelet supports it
	} {
		if _, ok := flags(t, c.wish(fmt.Sprintf("1.%d.0", c.last)))[c.flag]; !ok {
			t.Errorf("kubelet 1.%d lacks --%s", c.last, c.flag)
		}
		if _, ok := flags(t, c.wish(fmt.Sprintf("1.%d.0", c.first)))[c.flag]; ok {
			t.Errorf("kubelet 1.%d gets --%s", c.first, c.flag)
		}
	}
}

func TestTheLaterWins(t *testing.T) {
	w := usual("1.36.3")
	for _, step := range []struct {
		change func()
		want   map[string]string
	}{
		{func() {
			w.KubeadmFlags = nil
		}, map[string]string{"container-runtime-endpoint": kubeletargs.RuntimeEndpoint, "cgroups-per-qos": "false"}},
		{func() {
			w.KubeadmFlags = map[string]string{"container-runtime-endpoint": "npipe:////./pipe/x",
				"hostname-override": "theirs", "node-labels": "a=b", "v": "1"}
		}, map[string]string{"container-runtime-endpoint": "npipe:////./pipe/x", "hostname-override": "win-1",
			"node-labels": "a=b", "v": "1"}},
		{func() { w.NodeLabels = map[string]string{"c": "d"} }, map[string]string{"node-labels": "c=d", "v": "1"}},
		{func() {
			w.ExtraArgs = map[string]string{"v": "9", "container-runtime-endpoint": "npipe:////./pipe/y",
				"node-labels": "c=d"}
		},
			map[string]string{"v": "9", "container-runtime-endpoint": "npipe:////./pipe/y", "node-labels": "c=d"}},
	} {
		step.change()
		got := flags(t, w)
		for name, want := range step.want {
			if got[name] != want {
				t.Errorf("--%s=%s, want %s", name, got[name], want)
			}
		}
	}
}

func TestCommandLineRefusesInvalidWishes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*kubeletargs.Wish)
		field  string
		want   string
	}{
		{"no version", func(w *kubeletargs.Wish) { w.Version = "" }, "spec.kubernetes.version", "not a version"},
		{"too old", func(w *kubeletargs.Wish) { w.Version = "1.21.9" }, "spec.kubernetes.version", "use 1.22"},
		{"2.x", func(w *kubeletargs.Wish) { w.Version = "2.0.0" }, "spec.kubernetes.version", "not a version"},
		{"gone", func(w *kubeletargs.Wish) { w.ExtraArgs = map[string]string{"network-plugin": "cni"} },
			"spec.kubernetes.kubelet.extraArgs[network-plugin]", "no longer supports since 1.24"},
		{"gone", func(w *kubeletargs.Wish) { w.ExtraArgs = map[string]string{"log-dir": "x"} },
			"spec.kubernetes.kubelet.extraArgs[log-dir]", "no longer supports since 1.26"},
		{"gone", func(w *kubeletargs.Wish) { w.ExtraArgs = map[string]string{"pod-infra-container-image": "x"} },
			"spec.kubernetes.kubelet.extraArgs[pod-infra-container-image]", "no longer supports since 1.35"},
		{"not yet", func(w *kubeletargs.Wish) {
			w.Version = "1.29.1"
			w.ExtraArgs = map[string]string{"config-dir": "x"}
		},
			"spec.kubernetes.kubelet.extraArgs[config-dir]", "only since 1.30"},
		{"patch of an old one", func(w *kubeletargs.Wish) { w.Version = "1.29.1"; w.ConfigDropIn = true },
			"spec.kubernetes.kubelet.configPatch", "needs kubelet 1.30"},
		{"both", func(w *kubeletargs.Wish) {
			w.ConfigDropIn = true
			w.ExtraArgs = map[string]string{"config-dir": "x"}
		},
			"spec.kubernetes.kubelet.extraArgs[config-dir]", "beside configPatch"},
		{"two names", func(w *kubeletargs.Wish) { w.ExtraArgs = map[string]string{"hostname-override": "other"} },
			"spec.kubernetes.kubelet.extraArgs[hostname-override]", "spec.kubernetes.join.nodeName"},
		{"two labels", func(w *kubeletargs.Wish) {
			w.NodeLabels, w.ExtraArgs = map[string]string{"a": "b"}, map[string]string{"node-labels": "c=d"}
		}, "spec.kubernetes.kubelet.extraArgs[node-labels]", "nodeLabels"},
		{"a label of Kubernetes'", func(w *kubeletargs.Wish) {
			w.NodeLabels = map[string]string{"node-role.kubernetes.io/worker": ""}
		},
			"spec.kubernetes.kubelet.nodeLabels[node-role.kubernetes.io/worker]", "label the node with kubectl"},
		{"a label of Kubernetes'", func(w *kubeletargs.Wish) {
			w.NodeLabels = map[string]string{"kubernetes.io/mine": ""}
		},
			"spec.kubernetes.kubelet.nodeLabels[kubernetes.io/mine]", "another prefix"},
	} {
		w := usual("v1.36.3")
		c.change(&w)
		_, err := kubeletargs.CommandLine(w)
		var field *kubeletargs.FieldError
		switch {
		case !errors.As(err, &field):
			t.Errorf("%s: the error is %v, a %T, want a %T", c.name, err, err, field)
		case field.Field != c.field:
			t.Errorf("%s: field.Field is %v, want %v", c.name, field.Field, c.field)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: err.Error() lacks %q:\n%s", c.name, c.want, err.Error())
		}
	}
	// Valid wishes.
	w := usual("v1.36.3-rc.1")
	w.NodeLabels = map[string]string{"topology.kubernetes.io/zone": "a", "x.node.kubernetes.io/y": "",
		"kubernetes.io.example.com/z": "1", "plain": "p"}
	labels := "kubernetes.io.example.com/z=1,plain=p,topology.kubernetes.io/zone=a,x.node.kubernetes.io/y="
	if got := flags(t, w)["node-labels"]; got != labels {
		t.Errorf("node-labels=%s, want %s", got, labels)
	}
}

func TestParseKubeadmFlags(t *testing.T) {
	for _, c := range []struct {
		content string
		want    map[string]string
	}{
		{"KUBELET_KUBEADM_ARGS=\"--container-runtime-endpoint=npipe:////./pipe/containerd-containerd " +
			"--register-with-taints=os=windows:NoSchedule\"\n",
			map[string]string{"container-runtime-endpoint": "npipe:////./pipe/containerd-containerd",
				"register-with-taints": "os=windows:NoSchedule"}},
		{`KUBELET_KUBEADM_ARGS="--a=b --c=\"d e\" --f 'g h' --on --root-dir=D:\\k"`,
			map[string]string{"a": "b", "c": "d e", "f": "g h", "on": "true", "root-dir": `D:\k`}},
		{"\ufeff# a comment\r\nOTHER=--x=y\r\nKUBELET_KUBEADM_ARGS=--a=b\r\n", map[string]string{"a": "b"}},
		{`KUBELET_KUBEADM_ARGS="--root-dir=D:\k --a=b"`, map[string]string{"root-dir": `D:\k`, "a": "b"}},
		{`KUBELET_KUBEADM_ARGS=""`, map[string]string{}},
		{"", map[string]string{}},
		{"\r\n", map[string]string{}},

		// kubeadm 1.13, before it quoted: kubernetes/kubeadm#203, with a flag that a user has appended.
		{"KUBELET_KUBEADM_ARGS=--cgroup-driver=systemd --network-plugin=cni --node-ip=10.10.10.1\n",
			map[string]string{"cgroup-driver": "systemd", "network-plugin": "cni", "node-ip": "10.10.10.1"}},
		// kubeadm 1.18 on Windows: kubernetes/kubernetes#88287, antrea-io/antrea#743.
		{`KUBELET_KUBEADM_ARGS="--cgroup-driver= --network-plugin=cni --node-ip=10.10.10.1"`,
			map[string]string{"cgroup-driver": "", "network-plugin": "cni", "node-ip": "10.10.10.1"}},
		// With the quotes of the file still around: kubernetes-sigs/sig-windows-tools#115.
		{"KUBELET_KUBEADM_ARGS='\"--network-plugin=cni --cert-dir=C:\\var\\lib\\kubelet\\pki\"'",
			map[string]string{"network-plugin": "cni", "cert-dir": `C:\var\lib\kubelet\pki`}},
		// Paths of another drive: aws/karpenter-provider-aws#4411, rancher/rancher#28143.
		{`KUBELET_KUBEADM_ARGS="--root-dir=D:\var\new"`, map[string]string{"root-dir": `D:\var\new`}},
		{`KUBELET_KUBEADM_ARGS="--root-dir=D:\101\x41 --cert-dir=D:\u0041\bin"`,
			map[string]string{"root-dir": `D:\101\x41`, "cert-dir": `D:\u0041\bin`}},
		{`KUBELET_KUBEADM_ARGS="--root-dir=D:\\var\\new"`, map[string]string{"root-dir": `D:\var\new`}},
		{`KUBELET_KUBEADM_ARGS="--root-dir=\\server\share"`, map[string]string{"root-dir": `\\server\share`}},
		{`KUBELET_KUBEADM_ARGS="--root-dir=\\\\server\\share"`, map[string]string{"root-dir": `\\server\share`}},
		{`KUBELET_KUBEADM_ARGS="--root-dir=D:\k\"`, map[string]string{"root-dir": `D:\k\`}},
		{`KUBELET_KUBEADM_ARGS="--root-dir=\"D:\my dir\new\" --a=b"`,
			map[string]string{"root-dir": `D:\my dir\new`, "a": "b"}},
		{`KUBELET_KUBEADM_ARGS=--root-dir=D:\temp\new`, map[string]string{"root-dir": `D:\temp\new`}},
		{`KUBELET_KUBEADM_ARGS='--root-dir=D:\var\new --b="c d"'`,
			map[string]string{"root-dir": `D:\var\new`, "b": "c d"}},
		// Repeated flags of v1beta4: kubernetes/kubeadm#1601.
		{`KUBELET_KUBEADM_ARGS="--node-labels=rack=r1 --v=2 --node-labels=zone=z1 --v=4"`,
			map[string]string{"node-labels": "rack=r1,zone=z1", "v": "4"}},
		{`KUBELET_KUBEADM_ARGS="--feature-gates A=true --feature-gates B=false --node-labels= --node-labels=a=b"`,
			map[string]string{"feature-gates": "A=true,B=false", "node-labels": "a=b"}},
		{`KUBELET_KUBEADM_ARGS="--register-with-taints=a=b:NoSchedule --register-with-taints=c=d:NoExecute"`,
			map[string]string{"register-with-taints": "a=b:NoSchedule,c=d:NoExecute"}},
		{`KUBELET_KUBEADM_ARGS="--reserved-memory 0:memory=1Gi --reserved-memory 1:memory=2Gi"`,
			map[string]string{"reserved-memory": "0:memory=1Gi;1:memory=2Gi"}},
		// Negative values.
		{`KUBELET_KUBEADM_ARGS="--oom-score-adj -999 --image-gc-high-threshold=-1 -v 4 --x -0.5"`,
			map[string]string{"oom-score-adj": "-999", "image-gc-high-threshold": "-1", "v": "4", "x": "-0.5"}},
		// Shells, PowerShell, cmd.exe.
		{"export KUBELET_KUBEADM_ARGS=\"--a=b\"\n", map[string]string{"a": "b"}},
		{"export\tKUBELET_KUBEADM_ARGS='--a=b'; \n", map[string]string{"a": "b"}},
		{"$env:KUBELET_KUBEADM_ARGS = \"--a=b --c=`\"d e`\" --f=\"\"g h\"\" --root-dir=D:\\\\new\"\r\n",
			map[string]string{"a": "b", "c": "d e", "f": "g h", "root-dir": `D:\\new`}},
		{"${Env:kubelet_kubeadm_args}='--a=b --c=''d e'''\r\n", map[string]string{"a": "b", "c": "d e"}},
		{"@echo off\r\nset \"KUBELET_KUBEADM_ARGS=--a=b --root-dir=D:\\new\"\r\n",
			map[string]string{"a": "b", "root-dir": `D:\new`}},
		{"set KUBELET_KUBEADM_ARGS=--a=b\r\n", map[string]string{"a": "b"}},
		{"KUBELET_KUBEADM_ARGS=\"--a=b\" # \"by\" hand\n", map[string]string{"a": "b"}},
		{"KUBELET_KUBEADM_ARGS=--a=b # by hand\n", map[string]string{"a": "b"}},
		{"KUBELET_KUBEADM_ARGS=\"--a=b\"\nKUBELET_KUBEADM_ARGS=\"--c=d\"\n", map[string]string{"c": "d"}},
		// PowerShell 5.1's > and Set-Content, and a file after a loss of power.
		{string(windowstext.Text{Encoding: windowstext.UTF16LE}.Encode(
			"KUBELET_KUBEADM_ARGS=\"--cloud-provider=external --node-labels=rack=r1\"\r\n")),
			map[string]string{"cloud-provider": "external", "node-labels": "rack=r1"}},
		{"\ufeffKUBELET_KUBEADM_ARGS=\"--a=b\"\r\r\n\x00\x00", map[string]string{"a": "b"}},
	} {
		got, err := kubeletargs.ParseKubeadmFlags([]byte(c.content))
		switch {
		case err != nil:
			t.Errorf("%q: %v", c.content, err)
		case !maps.Equal(got, c.want):
			t.Errorf("%q: got is %v, want %v", c.content, got, c.want)
		}
	}
	for _, content := range []string{`KUBELET_KUBEADM_ARGS="a=b"`, `KUBELET_KUBEADM_ARGS="--a='b"`,
		`KUBELET_KUBEADM_ARGS="--"`, "# nothing\n", "OTHER=--a=b\n", "--a=b --c=d\n", "\x00\x00\x00",
		"KUBELET_KUBEADM_ARGS=\"--a=b \\\n--c=d\"\n", "$env:KUBELET_KUBEADM_ARGS = \"--a=b\" + \" --c=d\"\n",
		"$KUBELET_KUBEADM_ARGS = '--a=b'\n", "KUBELET_KUBEADM_ARGS=\"--node-labels=ort=B\xfcro\"\n"} {
		switch flags, err := kubeletargs.ParseKubeadmFlags([]byte(content)); {
		case err == nil:
			t.Errorf("%q: %v, want an error", content, flags)
		case !strings.Contains(err.Error(), "kubeadm-flags.env"):
			t.Errorf("%q: err.Error() lacks %q:\n%s", content, "kubeadm-flags.env", err.Error())
		}
	}
}

// kube-log-runner has flags for the size and the age of logs since 1.34.
func TestLogRotationByVersion(t *testing.T) {
	for _, c := range []struct {
		version, size string
		age           time.Duration
		want          string
	}{
		{"1.33.9", "50Mi", time.Hour, ""},
		{"1.34.0", "50Mi", time.Hour, " --log-file-size=50Mi --log-file-age=1h0m0s"},
		{"1.36.3", "50Mi", 0, " --log-file-size=50Mi"},
		{"1.36.3", "0", time.Hour, ""},
		{"1.36.3", "", time.Hour, ""},
	} {
		w := usual(c.version)
		w.LogFileSize, w.LogFileAge = c.size, c.age
		line, err := kubeletargs.CommandLine(w)
		begin := kubeletargs.LogRunnerExe + " --log-file=" + kubeletargs.LogFile + c.want + " " + kubeletargs.KubeletExe
		if err != nil || !strings.HasPrefix(line, begin) {
			t.Errorf("%s, %s, %s: %v\n%s", c.version, c.size, c.age, err, line)
		}
	}
}
