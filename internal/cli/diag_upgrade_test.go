package cli_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/join/switches"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	cluster_simulated "github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
)

// ofKubeProxy is a kube-proxy of a DaemonSet on win-node, whose DaemonSet and ConfigMap no bundle has.
const ofKubeProxy = `
apiVersion: v1
kind: Pod
metadata: {namespace: kube-system, name: kube-proxy-windows-x}
spec:
  nodeName: win-node
  nodeSelector: {kubernetes.io/os: windows}
  containers:
  - name: kube-proxy
    image: example.com/proxy:1
    command: [kube-proxy.exe, --feature-gates=WinOverlay=true]
`

// A bundle has the findings of the nodes that it was made of, and names what it lacks. kubelet is started as by
// sig-windows-tools, by nssm and a script.
func TestABundleHasTheFindingsOfItsNodes(t *testing.T) {
	w, machines, _ := diagnosed(t, "win")
	m := machines["win"]
	registerForUpgrade(t, m)
	control, err := cluster_simulated.Start(cluster_simulated.Options{Version: "v1.27.3", NoPodNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	if err := control.Plant(strings.ReplaceAll(ofTwoNodes, "v1.27.0", "v1.28.4") + "---" + ofKubeProxy); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(w.folder, "admin.conf")
	if err := control.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	story := &lines{}
	if code, _ := w.swdt(t.Context(), story, "diag", "--out", w.bundle(), "--kubeconfig", kubeconfig); code != 0 {
		t.Fatalf("exit code %d\n%s", code, story)
	}
	check := func(run func(...string) (int, string), args ...string) (found []string, report upgradecheck.Report) {
		args = append([]string{"upgrade", "check", "--kubernetes", "1.38", "--containerd", "2.4", "--windows", "ltsc2025",
			"--fail-on", "never", "-o", "json"}, args...)
		code, out := run(args...)
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
			t.Fatalf("%v: exit code %d, %v\n%s\n%s", args, code, err, out, story)
		}
		for _, f := range report.Findings {
			for _, p := range f.Places {
				found = append(found, string(f.Severity)+" "+f.Rule+" @ "+p.String()+": "+f.Evidence)
			}
		}
		slices.Sort(found)
		return found, report
	}
	live, _ := check(func(args ...string) (int, string) { return w.swdt(t.Context(), story, args...) })
	stored, report := check(func(args ...string) (int, string) { return withoutNodeFile(t, args...) }, "--bundle", w.bundle())
	const ofPod = "error gate-unknown @ node win-node, Pod kube-system/kube-proxy-windows-x, spec.containers[0].command[1]: --feature-gates=WinOverlay=true"
	if !slices.Contains(stored, ofPod) {
		t.Errorf("the bundle lacks the finding of the pod: %s", strings.Join(stored, "\n"))
	}
	stored = slices.DeleteFunc(stored, func(line string) bool { return strings.Contains(line, "Pod ") })
	if diff := cmp.Diff(live, stored); diff != "" || len(live) < 9 {
		t.Errorf("%d findings, -live +stored:\n%s", len(live), diff)
	}
	var unread []string
	for _, u := range report.Unread {
		unread = append(unread, u.Place.String()+": "+u.Why)
	}
	want := []string{`node win-node, D:\own\proxy.yaml: the bundle does not have it: the node has no such file, or no collector reads it`,
		"ConfigMaps and DaemonSets of the cluster: a bundle does not have them; `swdt upgrade check` with a kubeconfig reads them"}
	if diff := cmp.Diff(want, unread); diff != "" {
		t.Errorf("unread, -want +got:\n%s", diff)
	}
}

// withoutNodeFile runs swdt without a node file and without a cluster.
func withoutNodeFile(t *testing.T, args ...string) (code int, stdout string) {
	var out bytes.Buffer
	code = cli.Run(t.Context(), ui.Streams{Out: &out, Err: &lines{}}, args,
		cli.Environment{Agent: agent, Drivers: drivers, Getenv: func(string) string { return "" }})
	return code, out.String()
}

// registerForUpgrade gives a machine settings that an upgrade breaks, in each kind of place.
func registerForUpgrade(t *testing.T, m *simulated.Machine) {
	t.Helper()
	for path, text := range map[string]string{
		`C:\k\StartKubelet.ps1`:                   "$words = (Get-Content C:/var/lib/kubelet/kubeadm-flags.env)\r\nC:\\k\\kubelet.exe $words --config=/var/lib/kubelet/config.yaml --log-dir=/var/log/kubelet\r\n",
		`C:\var\lib\kubelet\kubeadm-flags.env`:    "KUBELET_KUBEADM_ARGS=\"--pod-infra-container-image=registry.k8s.io/pause:3.10\"\n",
		`C:\var\lib\kubelet\config.yaml`:          "kind: KubeletConfiguration\nfeatureGates:\n  NodeSwap: true\n",
		`C:\Program Files\containerd\config.toml`: "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dir = 'C:\\opt\\cni\\bin'\nconf_dir = 'C:\\etc\\cni\\net.d'\n",
		`C:\etc\cni\net.d\10-calico.conf`:         `{"cniVersion": "0.3.1", "name": "Calico", "type": "calico"}`,
	} {
		m.WriteFile(path, []byte(text))
	}
	services := m.Process("register")
	for name, line := range map[string]string{"kubelet": `C:\k\nssm.exe`,
		"kube-proxy": `C:\k\kube-proxy.exe --windows-service --config=D:\own\proxy.yaml --feature-gates=WinDSR=true`} {
		if err := services.Services.Configure(t.Context(), platform.ServiceConfig{Name: name, CommandLine: line}); err != nil {
			m.AddService(platform.ServiceConfig{Name: name, CommandLine: line})
		}
	}
	const parameters = `HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Parameters`
	for name, value := range map[string]string{"Application": "powershell.exe", "AppParameters": `-File C:\k\StartKubelet.ps1`} {
		if err := services.Registry.Set(parameters, platform.RegistryValue{Name: name, Type: platform.RegistryString, String: value}); err != nil {
			t.Fatal(err)
		}
	}
	if err := services.Registry.Set(switches.Policy, platform.RegistryValue{Name: "2629306509", Type: platform.RegistryDWord, Integer: 1}); err != nil {
		t.Fatal(err)
	}
}

// A node that a bundle could not collect is a failed node, and a part that its collector did not read is named.
func TestABundleLacksANode(t *testing.T) {
	w, _, unplugs := diagnosed(t, "win", "gone")
	unplugs["gone"]()
	if code, out := w.swdt(t.Context(), &lines{}, "diag", "--out", w.bundle()); code != 3 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	code, out := withoutNodeFile(t, "upgrade", "check", "--bundle", w.bundle(), "--kubernetes", "1.36", "--fail-on", "never")
	for _, want := range []string{"not read: node gone: ", "connection refused", "not read: node win-node, Node and pods: the bundle does not have it: no cluster to ask"} {
		if !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, out)
		}
	}
	for _, args := range [][]string{{"--bundle", w.bundle(), "--fix"}, {"--bundle", filepath.Join(w.folder, "swdt.yaml")}} {
		if code, _ := withoutNodeFile(t, append([]string{"upgrade", "check", "--kubernetes", "1.36"}, args...)...); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
