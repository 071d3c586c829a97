//go:build e2e && linux

package e2e

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/join/smoke"
)

// upReport has the promised fields of `swdt up -o json`.
type upReport struct {
	Name, Result string
	Stages       []struct {
		Stage, Node, Result string
		Seconds             float64
	}
	Check   *smoke.Report
	Kept    []string
	Seconds float64
}

// results returns the results of the stages.
func (r upReport) results() (all []string) {
	for _, stage := range r.Stages {
		all = append(all, strings.TrimSpace(stage.Stage+" "+stage.Node)+" "+stage.Result)
	}
	return all
}

// The network of kind in upNode. The test makes it, so kind's container always gets its first free
// address.
const (
	upSubnet       = "172.30.0.0/16"
	upGateway      = "172.30.0.1" // this machine, and so the Wine node
	upControlPlane = "172.30.0.2"
	upNoMachine    = "172.30.255.254" // no machine has it
)

// upNode is a Wine node that runs pods, and the files with which `swdt up` makes a cluster for it.
type upNode struct {
	podCluster
	files []string // -c FILE…
	image string   // agnhost, for Windows in the node's registry, and for Linux in Docker
}

func newUpNode(t *testing.T) upNode {
	t.Helper()
	agnhost := lab(t, "pods/agnhost-1.36.3.exe")
	c := podCluster{cluster: cluster{wineSandbox(t)}}
	c.podNode = podNode{sandboxInfo: c.cluster.sandboxInfo, network: resolvingNetwork, registry: registry(t,
		"agnhost:2.63.0="+agnhost+";Windows/System32/curl.exe="+lab(t, "pods/curl.exe"))}
	n := upNode{podCluster: c, image: c.registry + "/agnhost:2.63.0"}
	n.config = withKubeProxy(t, c.joinFile(t, credentialsOf(t, c.cluster.sandboxInfo), joinWith{
		containerd: labContainerd(c.registry),
		more:       "    join: {nodeName: wine-1, nodeIP: " + upGateway + "}\n",
	}), lab(t, "node/kube-proxy-1.36.3.exe"))
	n.installLab(t)
	n.proxy().logsAtFailure(t)
	n.files = []string{"-c", clusterFile(t, ", images: ['"+n.image+"']"), "-c", n.config}
	run(t, "docker", "import", "--change", `ENTRYPOINT ["/agnhost"]`, lab(t, "kind/agnhost-1.36.3.tar"), n.image)
	return n
}

// TestUpAndDown makes a real cluster with a Wine node with `swdt up`, which the test kills three times, runs
// pods on both, follows kube-proxy, which the join has made a service, and removes everything with `swdt down`.
func TestUpAndDown(t *testing.T) {
	if !inDocker(t) {
		return
	}
	loadKindImage(t)
	ownHome(t)
	run(t, "docker", "network", "create", "--subnet", upSubnet, "kind")
	ownHosts(t, "127.0.0.1 localhost\n"+upControlPlane+" dev-control-plane\n")
	n := newUpNode(t)
	ok(t, "exec", "-c", n.config, "--", "hostname") // brings the agent, which stays
	before, registry := upStateOf(t, n.cluster.Prefix), n.hives(t)
	up := append([]string{"up", "--allow-reboot"}, n.files...)
	killAt(t, "Starting control-plane", up...)
	ok(t, append(up, "--only", "cluster")...)
	n.cluster.Kubeconfig = filepath.Join(os.Getenv("HOME"), ".kube", "config")
	n.installNetwork(t)
	killAt(t, "kubeadm: [preflight]", up...)
	killAt(t, "waiting for the HNS network flannel.4096", up...)
	n.runFlannel(t)

	made := decoded[upReport](t, ok(t, append(up, "-o", "json")...))
	if diff := cmp.Diff([]string{"cluster unchanged", "join wine-1 changed"}, made.results()); diff != "" {
		t.Errorf("up after three that were killed (-want +got):\n%s", diff)
	}
	n.expectNode(t, "wine-1", "Ready", "v1.36.3", "Windows Server 2022 Datacenter")
	n.smoke(t, up)
	n.programsServices(t)
	again := decoded[upReport](t, ok(t, append(up, "-o", "json")...))
	if diff := cmp.Diff([]string{"cluster unchanged", "join wine-1 unchanged"}, again.results()); diff != "" {
		t.Errorf("a second up (-want +got):\n%s", diff)
	}
	t.Logf("a second up took %.1f s", again.Seconds)

	down := append([]string{"down", "--yes"}, n.files...)
	killAt(t, "leave the cluster", down...)
	removed := decoded[upReport](t, ok(t, append(down, "-o", "json")...))
	maybe := func(kept string) bool { return kept == podLogsKept }
	if diff := cmp.Diff(upKept, slices.DeleteFunc(slices.Clone(removed.Kept), maybe)); diff != "" {
		t.Errorf("down kept (-want +got):\n%s", diff)
	}
	expectAsBefore(t, before, upStateOf(t, n.cluster.Prefix), removed.Kept)
	if diff := cmp.Diff(registry, n.hives(t)); diff != "" {
		t.Errorf("the registry of the node (-before +after):\n%s", diff)
	}
	n.expectNoHNS(t)
	nothing := decoded[upReport](t, ok(t, append(down, "-o", "json")...))
	if nothing.Result != "unchanged" || len(nothing.Stages) > 0 {
		t.Errorf("a second down: %+v", nothing)
	}
}

// notOfUp matches the keys of the registry that Wine writes if a program opens a console or this machine gets
// another network card, and the features, which a join enables and down leaves enabled.
var notOfUp = regexp.MustCompile(`^HKEY_CURRENT_USER\\Console$|\\NetworkCards\\\d+$|\\SOFTWARE\\swdt sandbox`)

// hives returns the keys of the node's registry that down must leave as they were before up.
func (n upNode) hives(t *testing.T) map[string]string {
	t.Helper()
	keys := registryOf(t, n.cluster.Prefix, n.config)
	maps.DeleteFunc(keys, func(key, _ string) bool { return notOfUp.MatchString(key) })
	return keys
}

// ownHome sets a separate home folder for the test, with a kubeconfig that has another cluster.
func ownHome(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECACHEDIR", t.TempDir()) // of the test's kubectl
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "KUBECONFIG"} {
		t.Setenv(name, "")
	}
	kubeconfig := filepath.Join(home, ".kube", "config")
	if err := errors.Join(os.Mkdir(filepath.Dir(kubeconfig), 0o700),
		os.WriteFile(kubeconfig, []byte(otherKubeconfig), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// otherKubeconfig is a kubeconfig of another cluster, whose comment and order no library would write.
const otherKubeconfig = `# the clusters of my team
kind: Config
apiVersion: v1
current-context: production
contexts: [{name: production, context: {cluster: production, user: me, namespace: shop}}]
clusters: [{name: production, cluster: {server: https://10.1.2.3:6443}}]
users: [{name: me, user: {token: secret}}]
`

// upKept are the things that down of upNode keeps: containerd's folder, in which the lab's snapshotter is
// before the join, and logs.
var upKept = []string{
	`C:\ProgramData\containerd on wine-1: it was there before the join, and has the images of pods`,
	`C:\var\lib on wine-1: it is not empty`,
	`C:\var\log\containerd on wine-1: it is not empty`,
	`C:\var\log\kube-proxy on wine-1: it is not empty`,
	`C:\var\log\kubelet on wine-1: it is not empty`,
}

// podLogsKept is kept too, unless kubelet has removed the logs of the last pod before it ended.
const podLogsKept = `C:\var\log\pods on wine-1: it is not empty`

// smoke runs `swdt up --smoke`. All legs pass. Programs under Wine are in the network of this machine, so routes stand for
// flannel's overlay: pods of the Linux node are behind kind's container. No route leads to a Service: carryServices takes
// packets to one where the load balancers of HNS say, which kube-proxy has made. The lab's network plugin brings the pod's
// name servers to this machine's resolver, and the lab's curl.exe stands for that of Windows.
func (n upNode) smoke(t *testing.T, up []string) {
	t.Helper()
	for _, route := range [][]string{
		{"10.244.0.0/24", "via", upControlPlane}, {"local", "10.244.128.0/17", "dev", "lo"},
		{"10.96.0.0/16", "via", upNoMachine},
	} {
		run(t, "ip", append([]string{"route", "add"}, route...)...)
	}
	carryServices(t, n.proxy().hns())
	n.kubectl(t, "-n", "kube-system", "wait", "--for=condition=Available", "deployment/coredns", "--timeout=120s")
	n.ownResolver(t)
	r := ok(t, append(up, "--smoke", "--smoke-image", n.image, "-o", "json")...)
	report := decoded[upReport](t, r)
	if diff := cmp.Diff([]string{"cluster unchanged", "join wine-1 unchanged", "check unchanged"}, report.results()); diff != "" {
		t.Errorf("up --smoke (-want +got):\n%s", diff)
	}
	if report.Check == nil || len(report.Check.Nodes) != 1 {
		t.Fatalf("the smoke test: %+v", report.Check)
	}
	for _, l := range report.Check.Nodes[0].Legs {
		t.Logf("%s %s %.1f s %s (%s)", l.Name, l.Result, l.Seconds, l.Message, carriers[l.Name])
		if l.Result != smoke.Passed {
			t.Errorf("leg %s: %s: %s", l.Name, l.Result, l.Message)
		}
	}
}

// carriers has what carries the traffic of the smoke test's legs here, and on a Windows node.
var carriers = map[string]string{
	smoke.ReachesLinux:     "a route of this machine; on Windows: flannel's overlay",
	smoke.ReachedFromLinux: "a route of this machine; on Windows: flannel's overlay",
	smoke.Resolves:         "nftables by kube-proxy's load balancers in the imitation of HNS; on Windows: VFP by those of HNS",
	smoke.ReachesService:   "nftables by kube-proxy's load balancers in the imitation of HNS; on Windows: VFP by those of HNS",
	smoke.ReachesAPI:       "nftables by kube-proxy's load balancers in the imitation of HNS; on Windows: VFP by those of HNS",
}

// ownResolver makes the name servers that the lab's network plugin gets for a pod those of this test,
// and so those of Wine.
func (n upNode) ownResolver(t *testing.T) {
	t.Helper()
	file := filepath.Join(n.cluster.Prefix, "drive_c/lab/resolv.conf")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	mountOver(t, file, "/etc/resolv.conf")
}

// resolvingNetwork is the configuration of the lab's network plugin from before the join on: containerd may miss its change.
const resolvingNetwork = `{"cniVersion": "0.3.1", "name": "lab", "plugins": [{"type": "lab-network",
	"capabilities": {"dns": true}, "dnsFile": "C:\\lab\\resolv.conf", "hnsNetwork": "flannel.4096"}]}`
