package settingchange

import (
	"errors"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
)

func TestWithGate(t *testing.T) {
	for _, test := range []struct{ gates, name, value, want string }{
		{"", "A", "true", "A=true"},
		{"B=false", "A", "true", "B=false,A=true"},
		{"A=false,B=false", "A", "true", "A=true,B=false"},
		{"A=false,B=false,A=true", "A", "true", "A=true,B=false"},
		{"A=false,B=false", "A", "", "B=false"},
		{"A=false", "A", "", ""},
		{"AllAlpha=true", "A", "", "AllAlpha=true"},
	} {
		got, keep := withGate(test.gates, test.name, test.value)
		if got != test.want || keep != (test.want != "") {
			t.Errorf("%q with %s=%s: %q, %v", test.gates, test.name, test.value, got, keep)
		}
	}
}

// The lines are reduced from published installers, with other values: sig-windows-tools (kubeadm/scripts/StartKubelet.ps1,
// hostprocess/flannel/kube-proxy/start.ps1), k0s (pkg/component/worker/kubeproxy_windows.go), WMCO
// (pkg/services/services.go), kubernetes-on-windows' nssm batch file, and kubeadm's kubeadm-flags.env.
func TestGateInAScript(t *testing.T) {
	for _, test := range []struct{ line, name, value, want string }{
		{`$cmd = "C:\k\kubelet.exe --config=/var/lib/kubelet/config.yaml --feature-gates=A=true,B=false --v=2 $words"`, "B", "true",
			`$cmd = "C:\k\kubelet.exe --config=/var/lib/kubelet/config.yaml --feature-gates=A=true,B=true --v=2 $words"`},
		{`$cmd = "C:\k\kubelet.exe --config=c.yaml --feature-gates=WinDSR=true --v=2"`, "WinDSR", "",
			`$cmd = "C:\k\kubelet.exe --config=c.yaml --v=2"`},
		{`$arguments = "--feature-gates=WinOverlay=true --v=6"`, "WinOverlay", "", `$arguments = "--v=6"`},
		{`        "--feature-gates=WinOverlay=true,IPv6DualStack=false",`, "WinOverlay", "",
			`        "--feature-gates=IPv6DualStack=false",`},
		{`--feature-gates=WinOverlay=true,WinDSR=true ^`, "WinDSR", "", `--feature-gates=WinOverlay=true ^`},
		{`--feature-gates "WinDSR=true" --v=2`, "WinDSR", "", `--v=2`},
		{`KUBELET_KUBEADM_ARGS="--v=2 --feature-gates=A=true"`, "A", "", `KUBELET_KUBEADM_ARGS="--v=2"`},
		{`KUBELET_KUBEADM_ARGS="--feature-gates=A=true"`, "A", "", `KUBELET_KUBEADM_ARGS=""`},
		{`KUBELET_KUBEADM_ARGS="--feature-gates=A=true --v=2"`, "A", "false", `KUBELET_KUBEADM_ARGS="--feature-gates=A=false --v=2"`},
	} {
		for _, ends := range []string{"\n", "\r\n"} {
			s := script{file: "f", text: "one" + ends + test.line + ends + "three", line: 2}
			got, err := s.gate(test.name, test.value)
			if want := "one" + ends + test.want + ends + "three"; err != nil || strings.TrimSpace(got) != strings.TrimSpace(want) {
				t.Errorf("%s\n%q\nwant\n%q: %v", test.line, got, want, err)
			}
		}
	}
}

// An element of a list goes with its line, if another one follows.
func TestAnElementOfAListGoes(t *testing.T) {
	s := script{text: "$args = \"--a\",\r\n    '--feature-gates=WinDSR=true',\r\n    '--b'\r\n", line: 2}
	if got, err := s.gate("WinDSR", ""); err != nil || got != "$args = \"--a\",\r\n    '--b'\r\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestScriptsThatAreNotChanged(t *testing.T) {
	for _, line := range []string{
		`$args += "--feature-gates=A=true"`, // the last of a list
		`$gates = "A=true"`,                 // a variable
		`"--feature-gates=A=true" + "A=true"`,
		`--feature-gates=$gates`,
	} {
		_, err := script{file: "f", text: line, line: 1}.gate("A", "")
		var refused *LineError
		if !errors.As(err, &refused) || refused.Line != 1 {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := (script{text: "a", line: 9}).gate("A", "true"); err == nil {
		t.Error("a line that does not exist is changed")
	}
}

func TestFlagInAScript(t *testing.T) {
	const line = `$cmd = "C:\k\kubelet.exe --max-pods=110 --pod-infra-container-image='pause:3' --node-ip $ip --v 2"`
	to := func(value string) changer { return func(string) (string, bool) { return value, value != "" } }
	for _, test := range []struct{ name, value, old, new string }{
		{"max-pods", "40", "--max-pods=110", "--max-pods=40"},
		{"max-pods", "", " --max-pods=110", ""},
		{"pod-infra-container-image", "", " --pod-infra-container-image='pause:3'", ""},
		{"v", "4", "--v 2", "--v 4"},
	} {
		got, err := script{text: line, line: 1}.flag(test.name, to(test.value))
		if want := strings.Replace(line, test.old, test.new, 1); err != nil || got != want {
			t.Errorf("%s: %s, %v", test.name, got, err)
		}
	}
	for name, value := range map[string]string{"node-ip": "10.0.0.1", "absent": "1", "max-pods": `4"; Remove-Item C:\ #`} {
		if got, err := (script{text: line, line: 1}).flag(name, to(value)); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A flag without a value is followed by another flag, which stays.
func TestABareFlagInAScript(t *testing.T) {
	to := func(value string) changer {
		return func(is string) (string, bool) {
			if is != "true" {
				t.Errorf("the value is %q", is)
			}
			return value, value != ""
		}
	}
	for _, test := range []struct{ line, value, want string }{
		{`C:\k\kube-proxy.exe --enable-dsr --source-vip=10.1.2.3 --v=4`, "", `C:\k\kube-proxy.exe --source-vip=10.1.2.3 --v=4`},
		{`C:\k\kube-proxy.exe --enable-dsr --source-vip=10.1.2.3 --v=4`, "false",
			`C:\k\kube-proxy.exe --enable-dsr=false --source-vip=10.1.2.3 --v=4`},
		{`$cmd = "C:\k\kube-proxy.exe --v=4 --enable-dsr"`, "", `$cmd = "C:\k\kube-proxy.exe --v=4"`},
		{`kube-proxy.exe --enable-dsr "--source-vip=10.1.2.3"`, "", `kube-proxy.exe "--source-vip=10.1.2.3"`},
		{`KUBELET_KUBEADM_ARGS="--enable-dsr"`, "", `KUBELET_KUBEADM_ARGS=""`},
		{`kube-proxy.exe --v=4 --enable-dsr`, "false", `kube-proxy.exe --v=4 --enable-dsr=false`},
	} {
		got, err := script{text: test.line, line: 1}.flag("enable-dsr", to(test.value))
		if err != nil || got != test.want {
			t.Errorf("%s: %s, %v", test.line, got, err)
		}
	}
	for _, line := range []string{"kube-proxy.exe --enable-dsr $on", "kube-proxy.exe --enable-dsr `", `"--enable-dsr"`,
		"  '--enable-dsr',"} {
		if got, err := (script{text: line, line: 1}).flag("enable-dsr", func(string) (string, bool) { return "", false }); err == nil {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// An edit that changes another setting too is refused, however it came about.
func TestAnEditThatChangesAnotherSettingIsRefused(t *testing.T) {
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	const line = `C:\k\kube-proxy.exe --enable-dsr --source-vip=10.1.2.3 --v=4`
	s, err := of(nodesettings.Texts{
		Node: upgradecheck.Node{KubeProxy: "v1.36.3"},
		All:  []nodesettings.Text{{Program: kubesettings.KubeProxy, Kind: nodesettings.CommandLine, Content: []byte(line)}},
		Services: map[kubesettings.Program]*agentv1.ComponentState{
			kubesettings.KubeProxy: {ServiceConfig: &agentv1.ServiceConfig{CommandLine: line}}},
	}, kubesettings.KubeProxy, table)
	if err != nil {
		t.Fatal(err)
	}
	plan := func(after string) error {
		p := &Plan{editing: s.begin()}
		p.drafts[0].after = []byte(after)
		p.note(upgradecheck.FlagSetting, "enable-dsr", "true", "", p.drafts[0])
		return p.checkOthers()
	}
	if err := plan(`C:\k\kube-proxy.exe --source-vip=10.1.2.3 --v=4`); err != nil {
		t.Error(err)
	}
	for _, after := range []string{`C:\k\kube-proxy.exe --v=4`, `C:\k\kube-proxy.exe --source-vip=10.1.2.4 --v=4`,
		`C:\k\kube-proxy.exe --source-vip=10.1.2.3 --v=4 --cleanup`} {
		var other *OtherSettingError
		if err := plan(after); !errors.As(err, &other) {
			t.Errorf("%s: %v", after, err)
		}
	}
}
