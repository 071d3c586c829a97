package preflight_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	fakecluster "github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const calico = `
apiVersion: operator.tigera.io/v1
kind: Installation
metadata: {name: default}
spec:
  serviceCIDRs: [10.96.0.0/12]
  calicoNetwork: {bgp: Disabled, windowsDataplane: HNS}
---
apiVersion: projectcalico.org/v3
kind: IPAMConfiguration
metadata: {name: default}
spec: {strictAffinity: true}
---
apiVersion: crd.projectcalico.org/v1
kind: IPPool
metadata: {name: default-ipv4-ippool}
spec: {cidr: 192.168.0.0/16, vxlanMode: Always, ipipMode: Never}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kubernetes-services-endpoint, namespace: tigera-operator}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy-windows, namespace: kube-system}
spec:
  selector: {matchLabels: {app: kube-proxy}}
  template:
    metadata: {labels: {app: kube-proxy}}
    spec: {nodeSelector: {kubernetes.io/os: windows}, containers: []}
`

// pair is a machine and a cluster that it can join.
type pair struct {
	node    *nodetest.Node
	cluster *fakecluster.Cluster
	input   preflight.Input
}

func newPair(t *testing.T, preset simulated.Preset) *pair {
	t.Helper()
	p := &pair{node: nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: preset})}
	p.rule(t, &agentv1.FirewallRule{Name: "VXLAN", Allow: true, Protocol: "udp", Ports: "4789"})
	c, err := fakecluster.Start(fakecluster.Options{Names: []string{"cp.example"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p.cluster = c
	for _, r := range fakecluster.Calico() {
		c.AddResource(r)
	}
	p.plant(t, calico)
	p.open(t, "")
	p.input.Node = p.node.Node
	p.input.Spec = v1alpha1.Kubernetes{Version: "v1.36.3", Kubelet: v1alpha1.Kubelet{
		ExtraArgs: map[string]string{"system-reserved": "memory=2Gi"}}}
	return p
}

func (p *pair) plant(t *testing.T, manifests string) {
	t.Helper()
	if err := p.cluster.Plant(manifests); err != nil {
		t.Fatal(err)
	}
}

// open reads a kubeconfig for the cluster at that URL.
func (p *pair) open(t *testing.T, server string) {
	t.Helper()
	kubeconfig, err := p.cluster.Kubeconfig(server)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "admin.conf")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if p.input.Cluster, err = cluster.Open(cluster.Options{Kubeconfig: path}); err != nil {
		t.Fatal(err)
	}
}

func (p *pair) run(t *testing.T) preflight.Report {
	t.Helper()
	r, err := preflight.Run(t.Context(), p.input)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// enableContainers enables the feature, as on a machine after the reboot.
func (p *pair) enableContainers(t *testing.T) {
	t.Helper()
	containers := &agentv1.SetFeatureRequest{Name: "Containers", Enabled: true}
	if _, err := p.node.Features.Set(t.Context(), containers); err != nil {
		t.Fatal(err)
	}
	p.node.Machine.Reboot()
	if err := p.node.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAHealthyPairHasNoProblem(t *testing.T) {
	p := newPair(t, simulated.Minimal)
	p.enableContainers(t)
	operations := len(p.node.Machine.Operations())
	r := p.run(t)
	found(t, r)
	skipped(t, r)
	if got, want := len(r.Checks), len(preflight.Checks()); got != want {
		t.Errorf("%d checks were made, want %d", got, want)
	}
	if r.NodeName != "win-1" {
		t.Errorf("the node's name is %q, want win-1", r.NodeName)
	}
	if r.Windows != "ltsc2022" {
		t.Errorf("Windows is %q, want ltsc2022", r.Windows)
	}
	if r.Failed() {
		t.Error("the preflight failed")
	}
	if got := len(p.node.Machine.Operations()); got != operations {
		t.Errorf("the machine was changed: %v", p.node.Machine.Operations()[operations:])
	}
	for _, request := range p.cluster.Requests() {
		reads := request.Resource == "" || slices.Contains([]string{"get", "list"}, request.Verb)
		if !reads && !strings.HasPrefix(request.Resource, "selfsubject") {
			t.Errorf("the cluster was changed: %+v", request)
		}
	}
}

// One run reports every problem.
func TestManyProblemsInOneRun(t *testing.T) {
	p := newPair(t, simulated.Minimal)
	p.spoilMachine(t)
	p.spoilCluster(t)
	r := p.run(t)
	want := []string{
		"architecture error", "elevated error", "disk-space error", "memory error", "pending-reboot error",
		"hostname error", "clock error",
		"ports error", "ports error", "leftovers error", "kubelet-service error", "container-runtime error",
		"control-plane-name error", "control-plane-reachable error", "windows-version error",
		"version-skew error", "cluster-info error", "kubelet-config error", "node-name error", "virtualization error",
		"containers-feature warning", "container-runtime warning", "defender warning", "firewall warning", "calico warning",
		"calico warning", "calico warning",
		"kube-proxy warning",
	}
	var got []string
	for _, problem := range r.Problems {
		got = append(got, problem.Check+" "+string(problem.Severity))
		if problem.What == "" || problem.Remedy == "" {
			t.Errorf("says too little: %+v", problem)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("found %q\nwant  %q\n%+v", got, want, r.Problems)
	}
	if !r.Failed() {
		t.Error("the preflight did not fail")
	}
	if got := finding.Count(r.Problems, finding.Error); got != 20 {
		t.Errorf("%d errors, want 20", got)
	}
	if got := finding.Count(r.Problems, finding.Warning); got != 8 {
		t.Errorf("%d warnings, want 8", got)
	}
	p.input.Spec.Join.IgnorePreflightErrors = []string{"all"}
	if r := p.run(t); r.Failed() || finding.Count(r.Problems, finding.Warning) != len(want) {
		t.Errorf("all are ignored: %d warnings of %d problems", finding.Count(r.Problems, finding.Warning), len(want))
	}
}

func (p *pair) spoilMachine(t *testing.T) {
	t.Helper()
	p.rule(t, &agentv1.FirewallRule{Name: "lock", Protocol: "udp", Ports: "4000-5000"})
	m := p.node.Machine
	m.SetFacts(func(f *platform.Facts) {
		f.Hostname, f.Architecture, f.Elevated, f.Build = "WIN_1", "arm64", false, "14393.1"
		f.DiskFree, f.Memory, f.MemoryFree = 1e9, 5e8, 1e8
		f.PendingReboot, f.Time = []string{"Windows Update has installed something"}, f.Time.Add(-time.Hour)
		f.Virtualization = false
	})
	p.input.Spec.Containerd.Config = `default_runtime_name = "runhcs-wcow-hypervisor"`
	nginx := m.Spawn("nginx.exe")
	for _, at := range []string{"0.0.0.0:10250", "127.0.0.1:10248"} {
		if err := nginx.HandleHTTP(at, http.NotFoundHandler()); err != nil {
			t.Fatal(err)
		}
	}
	p.node.Put(`C:\etc\kubernetes\kubelet.conf`, []byte("of another cluster"))
	for name, line := range map[string]string{
		"kubelet": `C:\k\nssm.exe`, "containerd": `D:\containerd\containerd.exe --run-service`,
		"docker":    `C:\Docker\dockerd.exe --run-service`,
		"WinDefend": `"C:\ProgramData\Microsoft\Windows Defender\MsMpEng.exe"`,
	} {
		config := &agentv1.ServiceConfig{Name: name, CommandLine: line, StartType: agentv1.StartType_START_TYPE_MANUAL}
		if _, err := p.node.Services.Create(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	p.startDefender(t)
}

// startDefender gives the machine a Defender that runs.
func (p *pair) startDefender(t *testing.T) {
	t.Helper()
	const program = `C:\ProgramData\Microsoft\Windows Defender\MsMpEng.exe`
	p.node.Put(program, simulated.Binary(simulated.BinarySpec{Name: "MsMpEng"}))
	if _, err := p.node.Services.Start(t.Context(), &agentv1.StartServiceRequest{Name: "WinDefend"}); err != nil {
		t.Fatal(err)
	}
}

func (p *pair) spoilCluster(t *testing.T) {
	t.Helper()
	_, port, _ := strings.Cut(p.cluster.Address(), ":")
	// The node cannot resolve the configured name, and cannot reach the address in
	// cluster-info.
	p.input.Spec.Join.ControlPlaneEndpoint = "cp.example:" + port
	p.node.Machine.SetReach(p.cluster.Address(), platform.TimedOut)
	p.input.Spec.Version = "1.37.0"
	p.input.Spec.Join.DiscoveryTokenCACertHash = "sha256:" + strings.Repeat("0", 64)
	for _, object := range []struct{ resource, namespace, name string }{
		{"configmaps", "kube-system", "kubelet-config"},
		{"configmaps", "tigera-operator", "kubernetes-services-endpoint"},
		{"daemonsets.apps", "kube-system", "kube-proxy-windows"},
	} {
		if !p.cluster.RemoveOwned(object.resource, object.namespace, object.name) {
			t.Fatalf("the cluster has no %+v to remove", object)
		}
	}
	p.plant(t, `
apiVersion: operator.tigera.io/v1
kind: Installation
metadata: {name: default}
spec:
  serviceCIDRs: [10.96.0.0/12]
  calicoNetwork: {bgp: Enabled, windowsDataplane: HNS}
---
apiVersion: projectcalico.org/v3
kind: IPAMConfiguration
metadata: {name: default}
spec: {strictAffinity: false}
---
apiVersion: v1
kind: Node
metadata: {name: win_1}
status:
  nodeInfo: {operatingSystem: linux, kubeletVersion: v1.36.3}
  conditions: [{type: Ready, status: "True"}]
`)
}

// A running node that was not prepared by swdt: a join does not overwrite what is there.
func TestAPreparedNode(t *testing.T) {
	p := newPair(t, simulated.Node)
	var got []string
	for _, problem := range p.run(t).Problems {
		got = append(got, problem.Check+" "+string(problem.Severity))
	}
	if !slices.Equal(got, []string{"leftovers error", "kubelet-service warning"}) {
		t.Errorf("found %q", got)
	}
	p.input.Own = preflight.Own{Joined: true, Services: []string{"kubelet", "containerd"}}
	if r := p.run(t); len(r.Problems) > 0 {
		t.Errorf("our own: %+v", r.Problems)
	}
}

// The alias is not in the hosts file yet: the checks use the address that it will have.
func TestChecksUseTheFutureAlias(t *testing.T) {
	p := newPair(t, simulated.Minimal)
	p.enableContainers(t)
	_, port, _ := strings.Cut(p.cluster.Address(), ":")
	p.input.Spec.Join.ControlPlaneEndpoint = "cp.example:" + port
	p.input.Spec.Join.ControlPlaneAlias = &v1alpha1.ControlPlaneAlias{Name: "cp.example", IP: "127.0.0.1"}
	if r := p.run(t); len(r.Problems) > 0 {
		t.Errorf("%+v", r.Problems)
	}
	p.input.Spec.Join.ControlPlaneAlias.IP = "10.9.9.9"
	if r := p.run(t); finding.Count(r.Problems, finding.Error) != 1 || r.Problems[0].Check != "control-plane-reachable" {
		t.Errorf("%+v", r.Problems)
	}
}

func TestAClusterThatDoesNotAnswerIsOneProblem(t *testing.T) {
	p := newPair(t, simulated.Minimal)
	p.enableContainers(t)
	p.cluster.OnRequest(func(fakecluster.Request) fakecluster.Verdict { return fakecluster.Verdict{Drop: true} })
	r := p.run(t)
	found(t, r, "api-server")
	for _, p := range r.Problems {
		if p.Evidence == "" {
			t.Errorf("%s has no evidence", p.Check)
		}
	}
	if len(r.Skipped) != 13 { // the cluster's other eleven, the clock and the CA
		t.Errorf("skipped %+v", r.Skipped)
	}
}

func TestAUserWhoMayNotReadEverything(t *testing.T) {
	p := newPair(t, simulated.Minimal)
	p.enableContainers(t)
	p.cluster.OnRequest(func(r fakecluster.Request) fakecluster.Verdict {
		if r.Resource == "daemonsets" {
			return fakecluster.Forbid()
		}
		return fakecluster.Verdict{}
	})
	r := p.run(t)
	found(t, r, "pod-network")
	if got := finding.Count(r.Problems, finding.Warning); got != 1 {
		t.Errorf("%d warnings, want 1", got)
	}
	if len(r.Skipped) != 5 {
		t.Errorf("%d checks were skipped, want 5: %+v", len(r.Skipped), r.Skipped)
	}
}

func TestANodeThatIsLostEndsTheRun(t *testing.T) {
	p := newPair(t, simulated.Minimal)
	p.node.OnCall(func(method string) error {
		if strings.HasSuffix(method, "/Facts") {
			return fmt.Errorf("the machine is on fire")
		}
		return nil
	})
	if r, err := preflight.Run(t.Context(), p.input); err == nil || !strings.Contains(err.Error(), "on fire") {
		t.Errorf("%+v, %v", r, err)
	}
	p.node.OnCall(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := preflight.Run(ctx, p.input); err == nil {
		t.Errorf("called off: %+v", r)
	}
}

func TestRunNeedsOnlyTheNodeOrTheCluster(t *testing.T) {
	p := newPair(t, simulated.Minimal)
	p.enableContainers(t)
	without := p.input
	without.Cluster = nil
	r, err := preflight.Run(t.Context(), without)
	if err != nil {
		t.Fatal(err)
	}
	found(t, r)
	skipped(t, r, "clock")
	without = p.input
	without.Node = nil
	r, err = preflight.Run(t.Context(), without)
	if err != nil {
		t.Fatal(err)
	}
	found(t, r)
	skipped(t, r, "node-name")
}

// The report for people and for programs; neither contains a secret.
func TestReport(t *testing.T) {
	p := newPair(t, simulated.Minimal)
	p.spoilMachine(t)
	p.input.Spec.Join.Token = "abcdef.0123456789abcdef"
	p.input.Spec.Join.IgnorePreflightErrors = []string{"elevated"}
	r := p.run(t)
	var text bytes.Buffer
	if err := r.WriteText(ui.NewPage(&text, false), "sample"); err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for what, out := range map[string]string{"text": text.String(), "json": string(document)} {
		if strings.Contains(out, "0123456789abcdef") {
			t.Errorf("the token's secret is in the %s", what)
		}
	}
	for _, want := range []string{
		"sample: ", "✗ ports ", "kubelet's port 10250 is in use by nginx.exe (process ",
		"→ stop that program, or give it another port\n",
		"! elevated ", "may not change the machine (ignored)\n", "this cluster does not accept the bootstrap token abcdef",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}

// found requires that exactly these checks found a problem, one each.
func found(t *testing.T, r preflight.Report, want ...string) {
	t.Helper()
	var got []string
	for _, p := range r.Problems {
		got = append(got, p.Check)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the checks with problems differ (-want +got):\n%s\n%+v", diff, r.Problems)
	}
}

// skipped requires that exactly these checks were skipped.
func skipped(t *testing.T, r preflight.Report, want ...string) {
	t.Helper()
	var got []string
	for _, s := range r.Skipped {
		got = append(got, s.Check)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the skipped checks differ (-want +got):\n%s\n%+v", diff, r.Skipped)
	}
}

// rule adds an enabled inbound rule to the node's firewall.
func (p *pair) rule(t *testing.T, rule *agentv1.FirewallRule) {
	t.Helper()
	rule.Enabled, rule.Inbound, rule.Profiles = true, true, "any"
	if _, err := p.node.Firewall.Add(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
}

// The node is asked for all paths at the same time, since each question takes a round trip.
func TestPathsAreLookedAtTogether(t *testing.T) {
	p := newPair(t, simulated.Minimal)
	paths := []string{`C:\Windows`, `C:\no`, `C:\Windows\System32`}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked, all := atomic.Int32{}, make(chan struct{})
	p.node.OnCall(func(string) error {
		if int(asked.Add(1)) == len(paths) {
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	found, err := preflight.Looker{Node: p.node.Node}.Existing(ctx, paths...)
	if diff := cmp.Diff([]string{paths[0], paths[2]}, found); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
