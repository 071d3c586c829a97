package nodesettings_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/join/switches"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The requests that a node may cost.
const mostRequests = 10

// check reads a node, and returns the findings for an upgrade to 1.38 as "rule @ place: evidence".
func check(t *testing.T, n *nodetest.Node) (lines []string, facts upgradecheck.Facts) {
	t.Helper()
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	before := len(n.Calls())
	facts, err = nodesettings.Read(t.Context(), n.Node, nodesettings.Options{Name: "win-1", Windows: true}, table)
	if err != nil {
		t.Fatal(err)
	}
	if calls := n.Calls()[before:]; len(calls) > mostRequests {
		t.Errorf("%d requests: %v", len(calls), calls)
	}
	target, err := upgradecheck.ParseTarget(table, "1.38", "2.4", "ltsc2025")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range upgradecheck.Check(table, target, facts) {
		for _, p := range f.Places {
			lines = append(lines, fmt.Sprintf("%s %s @ %s: %s", f.Severity, f.Rule, p, f.Evidence))
		}
	}
	return lines, facts
}

// register sets the command line of a service, and the parameters that nssm reads.
func register(t *testing.T, n *nodetest.Node, service, line string, parameters ...string) {
	t.Helper()
	_, err := n.Services.Configure(t.Context(), &agentv1.ServiceConfig{Name: service, CommandLine: line})
	if errors.Is(err, fault.ErrNoService) {
		_, err = n.Services.Create(t.Context(), &agentv1.ServiceConfig{Name: service, CommandLine: line})
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"Application", "AppParameters"}[:len(parameters)] {
		_, err := n.Registry.Set(t.Context(), &agentv1.RegistrySetRequest{
			Key:   `HKLM\SYSTEM\CurrentControlSet\Services\` + service + `\Parameters`,
			Value: &agentv1.RegistryValue{Name: name, Type: "REG_SZ", String_: parameters[i]}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAHealthyNode(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	lines, facts := check(t, n)
	for _, line := range lines {
		// The simulated programs are old, and kube-proxy has a flag of klog.
		if strings.HasPrefix(line, "error") && !strings.Contains(line, "version-skew") && !strings.Contains(line, "--log-file") {
			t.Error(line)
		}
	}
	if len(facts.Nodes) != 1 || facts.Nodes[0].Kubelet == "" || facts.Nodes[0].Containerd == "" || len(facts.Unread) > 0 {
		t.Errorf("%+v, unread %+v", facts.Nodes, facts.Unread)
	}
}

// kubelet of sig-windows-tools: nssm starts a script, which reads kubeadm-flags.env. kube-proxy as RKE2 and AKS start it.
func TestSettingsOfServicesAreFound(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\k\StartKubelet.ps1`, []byte("$words = (Get-Content C:/var/lib/kubelet/kubeadm-flags.env).Trim('\"')\r\n"+
		"$line = \"C:\\k\\kubelet.exe $words --config=/var/lib/kubelet/config.yaml --config-dir=C:\\k\\conf.d --log-dir=/var/log/kubelet\"\r\nInvoke-Expression $line\r\n"))
	n.Put(`C:\var\lib\kubelet\kubeadm-flags.env`, []byte("KUBELET_KUBEADM_ARGS=\"--pod-infra-container-image=registry.k8s.io/pause:3.10\"\n"))
	n.Put(`C:\var\lib\kubelet\config.yaml`, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates:\n  NodeSwap: true\n"))
	n.Put(`C:\k\conf.d\10-own.conf`, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nuserNamespaces: {idsPerPod: 65536}\n"))
	n.Put(`C:\k\proxy.yaml`, []byte("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n"))
	n.Put(`C:\Program Files\containerd\config.toml`, []byte("version = 3\n[plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dir = 'C:\\opt\\cni\\bin'\n"))
	register(t, n, "kubelet", `C:\k\nssm.exe`, `powershell.exe`, `-ExecutionPolicy Bypass -File C:\k\StartKubelet.ps1`)
	register(t, n, "kube-proxy", `C:\k\kube-proxy.exe --windows-service --config=C:\k\proxy.yaml --feature-gates=WinDSR=true`)
	got, _ := check(t, n)
	want := []string{
		`error containerd-config-key @ node win-1, C:\Program Files\containerd\config.toml:3: cni.bin_dir = C:\opt\cni\bin`,
		`error field-not-on-windows @ node win-1, C:\k\conf.d\10-own.conf:3: userNamespaces`,
		`error flag-unknown @ node win-1, C:\k\StartKubelet.ps1:2: --log-dir`,
		`error flag-unknown @ node win-1, C:\var\lib\kubelet\kubeadm-flags.env:1: --pod-infra-container-image=registry.k8s.io/pause:3.10`,
		`error gate-unknown @ node win-1, C:\var\lib\kubelet\config.yaml:4: featureGates.NodeSwap: true`,
		`error proxy-mode @ node win-1, C:\k\proxy.yaml:3: mode: iptables`,
		`info gate-ignored @ node win-1, service kube-proxy: --feature-gates=WinDSR=true`,
	}
	var versions []string // of the simulated programs, which are older
	got = func(all []string) (rest []string) {
		for _, line := range all {
			if strings.Contains(line, "version-skew") || strings.Contains(line, "containerd-version") {
				versions = append(versions, line)
				continue
			}
			rest = append(rest, line)
		}
		return rest
	}(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s\n%v", diff, versions)
	}
}

// A service whose program is unknown is reported, and so is a file that cannot be read.
func TestWhatCannotBeRead(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\var\lib\kubelet\config.yaml`, []byte("\tnot YAML"))
	register(t, n, "kubelet", `C:\k\kubelet.exe --config=C:\var\lib\kubelet\config.yaml`)
	register(t, n, "kube-proxy", `powershell.exe -Command "& C:\k\kube-proxy.exe"`)
	_, facts := check(t, n)
	var got []string
	for _, u := range facts.Unread {
		got = append(got, u.Place.String()+": "+u.Why)
	}
	want := []string{
		`node win-1, C:\var\lib\kubelet\config.yaml: is not YAML: yaml: found character that cannot start any token`,
		"node win-1, service kube-proxy: a script in its command line starts its program, and no script was found in its command line",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// image-builder's script names the files behind a variable, in a list of arguments.
func TestTheScriptOfImageBuilder(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\k\StartKubelet.ps1`, []byte("$words = \"--cert-dir=$env:SYSTEMDRIVE/var/lib/kubelet/pki\",\n"+
		"  \"--config=$env:SYSTEMDRIVE/var/lib/kubelet/config.yaml\",\n  \"--cgroups-per-qos=false\"\n"+
		"Invoke-Expression (\"C:\\k\\kubelet.exe \" + ($words -join \" \"))\n"))
	n.Put(`C:\var\lib\kubelet\config.yaml`, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates:\n  NodeSwap: true\n"))
	register(t, n, "kubelet", `C:\k\nssm.exe`, `powershell.exe`, `-ExecutionPolicy Bypass -NoProfile C:\k\StartKubelet.ps1`)
	got, _ := check(t, n)
	want := `error gate-unknown @ node win-1, C:\var\lib\kubelet\config.yaml:4: featureGates.NodeSwap: true`
	if !slices.Contains(got, want) {
		t.Errorf("%q lacks %s", got, want)
	}
}

// The sources that only another release of Windows changes: the CNI configuration that containerd uses, which is the first by name, and an
// override that AKS sets on Server 2022 alone (parts/windows/windowscsehelper.ps1 of Azure/AgentBaker; see package switches).
func TestSettingsOfWindows(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\Program Files\containerd\config.toml`, []byte("version = 3\n[plugins.'io.containerd.cri.v1.runtime'.cni]\nconf_dir = '/etc/cni/net.d'\n"))
	n.Put(`C:\etc\cni\net.d\10-calico.conf`, []byte(`{"name": "Calico", "cniVersion": "0.3.1", "type": "calico", "ipam": {"type": "calico-ipam"}}`))
	n.Put(`C:\etc\cni\net.d\20-other.conflist`, []byte("{"))
	n.Put(`C:\etc\cni\net.d\00-key.pem`, []byte("no configuration"))
	for name, value := range map[string]uint64{"2629306509": 1, "1861198479": 1, "4242": 1} { // of 2022, of 2025, of nothing known
		if _, err := n.Registry.Set(t.Context(), &agentv1.RegistrySetRequest{Key: switches.Policy,
			Value: &agentv1.RegistryValue{Name: name, Type: "REG_DWORD", Integer: value}}); err != nil {
			t.Fatal(err)
		}
	}
	lines, facts := check(t, n)
	got := slices.DeleteFunc(lines, func(line string) bool {
		return !strings.Contains(line, "calico") && !strings.Contains(line, "override")
	})
	want := []string{
		`warning calico-windows-version @ node win-1, C:\etc\cni\net.d\10-calico.conf: calico`,
		"info windows-override @ node win-1, " + switches.Policy + ": 2629306509 = 1",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(facts.Unread) > 0 {
		t.Errorf("-want +got:\n%s\nunread %v", diff, facts.Unread)
	}
}

// A node with so many files that the last ones are not read says so.
func TestTheRequestsOfANodeAreBounded(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	for i := range 20 {
		n.Put(fmt.Sprintf(`C:\k\conf.d\%02d.conf`, i), []byte("kind: KubeletConfiguration\n"))
	}
	register(t, n, "kubelet", `C:\k\kubelet.exe --config-dir=C:\k\conf.d`)
	_, facts := check(t, n)
	unread := map[string]bool{}
	for _, u := range facts.Unread {
		unread[u.Place.File+u.Place.Field] = true
	}
	if !unread[switches.Policy] || !unread[`C:\k\conf.d\19.conf`] || unread[`C:\k\conf.d\00.conf`] {
		t.Errorf("%v", facts.Unread)
	}
}
