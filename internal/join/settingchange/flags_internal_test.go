package settingchange

import (
	"errors"
	"strings"
	"testing"
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
