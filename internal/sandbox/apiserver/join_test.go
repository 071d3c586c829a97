package apiserver_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

const (
	testToken      = "abcdef.0123456789abcdef"
	kubeadm        = `C:\k\kubeadm.exe`
	kubeletCommand = `"C:\k\kube-log-runner.exe" --log-file=C:/var/log/kubelet/kubelet.log C:\k\kubelet.exe ` +
		`--windows-service` +
		` --config=/var/lib/kubelet/config.yaml --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf ` +
		`--kubeconfig=/etc/kubernetes/kubelet.conf` +
		` --cert-dir=%SYSTEMDRIVE%\var\lib\kubelet\pki ` +
		`--container-runtime-endpoint=npipe:////./pipe/containerd-containerd`
)

// machine is a simulated Windows with the programs that join installs before kubeadm runs.
type machine struct {
	*simulated.Machine
	admin *simulated.Process
}

func prepare(t *testing.T, name, kubeletFlags string) *machine {
	t.Helper()
	m := simulated.New(simulated.Options{Hostname: name, Preset: simulated.Minimal})
	t.Cleanup(m.Close)
	for path, spec := range map[string]simulated.BinarySpec{
		`C:\Program Files\containerd\bin\containerd.exe`: {Name: "containerd", Version: "v1.7.12"},
		`C:\k\kubelet.exe`:         {Name: "kubelet", Version: "v1.36.3"},
		`C:\k\kube-log-runner.exe`: {Name: "kube-log-runner", Version: "v1.36.3"},
		kubeadm:                    {Name: "kubeadm", Version: "v1.36.3"},
	} {
		m.WriteFile(path, simulated.Binary(spec))
	}
	m.WriteFile(`C:\Program Files\containerd\config.toml`,
		[]byte("version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\nconf_dir = 'C:\\etc\\cni\\net.d'\n"))
	a := &machine{Machine: m, admin: m.Spawn("admin.exe")}
	services := a.admin.Platform.Services
	if err := a.admin.Platform.Registry.Set(`HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`,
		platform.RegistryValue{Name: "Path", Type: platform.RegistryExpandString,
			String: `%SystemRoot%\system32;C:\k`}); err != nil {
		t.Fatal(err)
	}
	for _, config := range []platform.ServiceConfig{
		{Name: "containerd", StartType: platform.StartAuto,
			CommandLine: `"C:\Program Files\containerd\bin\containerd.exe" --run-service`},
		{Name: "kubelet", StartType: platform.StartAuto, CommandLine: kubeletCommand + " " + kubeletFlags,
			Dependencies: []string{"containerd"}},
	} {
		if err := services.Create(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	if err := services.Start(t.Context(), "containerd"); err != nil {
		t.Fatal(err)
	}
	await(t, "containerd", func() bool { return a.state("containerd") == platform.Running })
	return a
}

func (m *machine) state(service string) platform.ServiceState {
	status, err := m.admin.Platform.Services.Status(m.admin.Context(), service)
	if err != nil {
		return ""
	}
	return status.State
}

// run runs a program and returns its exit code and output.
func (m *machine) run(t *testing.T, path string, args ...string) (int, string, string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code, err := m.admin.Platform.Processes.Run(t.Context(),
		platform.Command{Path: path, Args: args, Stdout: &out, Stderr: &errOut})
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String(), errOut.String()
}

// joinFile writes a JoinConfiguration with a token.
func (m *machine) joinFile(c *apiserver.Cluster, endpoint, hash string) string {
	const path = `C:\join.yaml`
	m.WriteFile(path, fmt.Appendf(nil, `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: %s
    token: %s
    caCertHashes: [%q]
timeouts: {discovery: 1s}
`, endpoint, testToken, hash))
	return path
}

func (f *fixture) mint(t *testing.T) {
	t.Helper()
	id, secret, _ := strings.Cut(testToken, ".")
	if _, err := f.client.CoreV1().Secrets("kube-system").Create(t.Context(),
		tokenSecret(id, secret, time.Now().Add(time.Hour)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n, err := f.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return n
}

func isReady(n *corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestTwoMachinesJoin(t *testing.T) {
	f := start(t, apiserver.Options{NodeGrace: 3 * time.Second, Names: []string{"cp.example"}})
	f.mint(t)
	machines := map[string]*machine{
		"win-1": prepare(t, "WIN-1", "--node-labels=team=a --register-with-taints=os=windows:NoSchedule"),
		"other": prepare(t, "WIN-2", "--hostname-override=other --node-ip=10.0.0.7"),
	}
	machines["other"].SetAdapters(simulated.Adapter{Name: "Ethernet",
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.7/24")}})
	for name, m := range machines {
		m.SetName("cp.example", "127.0.0.1")
		_, port, _ := strings.Cut(f.Address(), ":")
		args := []string{"join", "--config", m.joinFile(f.Cluster, "cp.example:"+port, f.CACertHash())}
		if name == "other" {
			args = append(args, "--node-name", name)
		}
		if code, out, errOut := m.run(t, kubeadm, args...); code != 0 {
			log, _ := m.ReadFile(`C:\var\log\kubelet\kubelet.log`)
			t.Fatalf("kubeadm join ended with %d: %s %s\nkubelet: %s", code, out, errOut, log)
		}
		await(t, name+" to be ready", func() bool {
			return isReady(f.node(t, name)) && !hasTaint(f.node(t, name), "node.kubernetes.io/not-ready")
		})
	}
	n := f.node(t, "win-1")
	info := n.Status.NodeInfo
	switch {
	case info.OSImage != "Windows Server 2022 Datacenter":
		t.Errorf("info.OSImage is %q, want %q", info.OSImage, "Windows Server 2022 Datacenter")
	case info.KubeletVersion != "v1.36.3":
		t.Errorf("info.KubeletVersion is %q, want %q", info.KubeletVersion, "v1.36.3")
	case info.ContainerRuntimeVersion != "containerd://1.7.12":
		t.Errorf("info.ContainerRuntimeVersion is %q, want %q", info.ContainerRuntimeVersion, "containerd://1.7.12")
	}
	switch {
	case n.Labels["team"] != "a":
		t.Errorf(`n.Labels["team"] is %q, want %q`, n.Labels["team"], "a")
	case n.Labels["node.kubernetes.io/windows-build"] != "10.0.20348":
		t.Errorf(`n.Labels["node.kubernetes.io/windows-build"] is %q, want %q`,
			n.Labels["node.kubernetes.io/windows-build"], "10.0.20348")
	case !hasTaint(n, "os"):
		t.Error(`hasTaint(n, "os") is false, want true`)
	case n.Status.Allocatable.Cpu().IsZero():
		t.Error("n.Status.Allocatable.Cpu().IsZero() is true, want false")
	}
	if address := f.node(t, "other").Status.Addresses[0].Address; address != "10.0.0.7" {
		t.Errorf("its address is %s", address)
	}
	m := machines["win-1"]
	for path, wanted := range map[string]bool{
		`C:\etc\kubernetes\kubelet.conf`: true, `C:\etc\kubernetes\bootstrap-kubelet.conf`: false,
		`C:\etc\kubernetes\pki\ca.crt`:   true,
		`C:\var\lib\kubelet\config.yaml`: true, `C:\var\lib\kubelet\kubeadm-flags.env`: true,
		`C:\var\lib\kubelet\pki\kubelet-client-current.pem`: true,
	} {
		if _, err := m.ReadFile(path); (err == nil) != wanted {
			t.Errorf("%s: (err == nil) is %v, want %v", path, (err == nil), wanted)
		}
	}
	for _, wanted := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
	} {
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == wanted.Type && c.Reason == wanted.Reason && c.Message == wanted.Message
		}) {
			t.Errorf("the conditions lack %s: %s: %+v", wanted.Type, wanted.Reason, n.Status.Conditions)
		}
	}
	t.Run("again", func(t *testing.T) {
		code, _, errOut := m.run(t, kubeadm, "join", "--config", m.joinFile(f.Cluster, f.Address(), f.CACertHash()))
		for _, wanted := range []string{`[ERROR FileAvailable-\etc\kubernetes\kubelet.conf]`,
			"[ERROR FileAvailable--etc-kubernetes-pki-ca.crt]: /etc/kubernetes/pki/ca.crt already exists", "Port 10250 is in use",
			"error: error execution phase preflight: preflight checks failed\n"} {
			if code != 1 || !strings.Contains(errOut, wanted) {
				t.Errorf("ended with %d and does not say %s: %s", code, wanted, errOut)
			}
		}
	})
	t.Run("after a reboot", func(t *testing.T) {
		m.Reboot()
		if err := m.AwaitUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.admin = m.Spawn("admin.exe")
		begun := time.Now()
		await(t, "a lease renewed since", func() bool {
			lease, err := f.client.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "win-1",
				metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return lease.Spec.RenewTime.After(begun)
		})
	})
	t.Run("reset", func(t *testing.T) {
		if code, _, errOut := m.run(t, kubeadm, "reset", "-f"); code != 0 {
			t.Fatalf("kubeadm reset ended with %d: %s", code, errOut)
		}
		if state := m.state("kubelet"); state != platform.Stopped {
			t.Errorf("kubelet is %s", state)
		}
		for _, path := range []string{`C:\etc\kubernetes\kubelet.conf`, `C:\etc\kubernetes\pki\ca.crt`,
			`C:\var\lib\kubelet\config.yaml`} {
			if _, err := m.ReadFile(path); err == nil {
				t.Errorf("%s is still there", path)
			}
		}
		await(t, "a node that is not ready", func() bool { return !isReady(f.node(t, "win-1")) })
		if !isReady(f.node(t, "other")) {
			t.Error("the other node is not ready any more")
		}
	})
}

func TestJoinsThatFail(t *testing.T) {
	f := start(t, apiserver.Options{})
	m := prepare(t, "win-1", "")
	t.Run("no such token", func(t *testing.T) {
		code, _, errOut := m.run(t, kubeadm, "join", "--config", m.joinFile(f.Cluster, f.Address(), f.CACertHash()))
		if code != 1 || !strings.Contains(errOut, `could not find a JWS signature in the cluster-info ConfigMap for `+
			`token ID "abcdef"`) {
			t.Errorf("ended with %d: %s", code, errOut)
		}
	})
	f.mint(t)
	await(t, "the token's signature", func() bool {
		info, err := f.client.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
		return err == nil && info.Data["jws-kubeconfig-abcdef"] != ""
	})
	t.Run("another CA", func(t *testing.T) {
		code, _, errOut := m.run(t, kubeadm, "join", "--config",
			m.joinFile(f.Cluster, f.Address(), "sha256:"+strings.Repeat("0", 64)))
		if code != 1 || !strings.Contains(errOut, "not pinned") {
			t.Errorf("ended with %d: %s", code, errOut)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		code, _, errOut := m.run(t, kubeadm, "join", "--config",
			m.joinFile(f.Cluster, "nowhere.example:6443", f.CACertHash()))
		if code != 1 || !strings.Contains(errOut, "no such host") {
			t.Errorf("ended with %d: %s", code, errOut)
		}
	})
	t.Run("a node that is ready", func(t *testing.T) {
		f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: win-1}\nstatus: {conditions: [{type: Ready, status: "+
			"'True'}]}")
		code, _, errOut := m.run(t, kubeadm, "join", "--config", m.joinFile(f.Cluster, f.Address(), f.CACertHash()))
		if code != 1 || !strings.Contains(errOut, `a Node with name "win-1" and status "Ready" already exists`) {
			t.Errorf("ended with %d: %s", code, errOut)
		}
		f.RemoveOwned("nodes", "", "win-1")
	})
	t.Run("without a pod network", func(t *testing.T) {
		f.RemoveOwned("daemonsets.apps", "kube-system", "pod-network-windows")
		code, out, errOut := m.run(t, kubeadm, "join", "--config", m.joinFile(f.Cluster, f.Address(), f.CACertHash()))
		if code != 0 {
			t.Fatalf("ended with %d: %s%s", code, out, errOut)
		}
		await(t, "why it is not ready", func() bool {
			for _, condition := range f.node(t, "win-1").Status.Conditions {
				if condition.Type == corev1.NodeReady && strings.Contains(condition.Message,
					"cni plugin not initialized") {
					return true
				}
			}
			return false
		})
		m.WriteFile(`C:\etc\cni\net.d\10-some.conf`, []byte("{}"))
		await(t, "ready", func() bool { return isReady(f.node(t, "win-1")) })
	})
}

// A kubelet changes few labels of a Node that exists already, and no taints (kubernetes v1.36.3,
// pkg/kubelet/kubelet_node_status.go, tryRegisterWithAPIServer).
func TestAJoinToANodeThatExists(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.mint(t)
	f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: win-1, labels: {kubernetes.io/arch: arm64}}")
	m := prepare(t, "win-1", "--node-labels=team=a --register-with-taints=os=windows:NoSchedule")
	if code, _, errOut := m.run(t, kubeadm, "join", "--config",
		m.joinFile(f.Cluster, f.Address(), f.CACertHash())); code != 0 {
		t.Fatalf("kubeadm join ended with %d: %s", code, errOut)
	}
	await(t, "kubelet to report", func() bool { return len(f.node(t, "win-1").Status.Conditions) > 0 })
	n := f.node(t, "win-1")
	if n.Labels["kubernetes.io/arch"] != "amd64" || n.Labels["team"] != "" || hasTaint(n, "os") {
		t.Errorf("labels %v, taints %v", n.Labels, n.Spec.Taints)
	}
}
