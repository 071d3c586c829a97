package overview_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster/kindtest"
	"github.com/swdt-dev/swdt/internal/day0/overview"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// world is a cluster of a simulated kind with an API server in memory, and nodes whose states the test
// chooses.
type world struct {
	t        *testing.T
	folder   string
	server   *apiserver.Cluster
	kind     *kindtest.Kind
	clusters *kindcluster.Clusters
	machines *vm.Machines
	found    map[string]overview.Found // by node
	failures map[string]error          // by node: why swdt does not reach it
	nodes    []config.Document
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	w := &world{t: t, folder: t.TempDir(), server: server, found: map[string]overview.Found{},
		failures: map[string]error{}}
	kubeconfig := filepath.Join(w.folder, "admin.conf")
	if err := server.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	w.kind = &kindtest.Kind{Folder: t.TempDir(), Kubeconfig: kubeconfig}
	if w.clusters, err = kindcluster.New(w.kind, filepath.Join(w.folder, "clusters")); err != nil {
		t.Fatal(err)
	}
	store, err := vm.OpenStore(filepath.Join(w.folder, "vms"))
	if err != nil {
		t.Fatal(err)
	}
	w.machines = vm.NewMachines(store, "swdt test", &simulatedvm.Driver{})
	return w
}

// made makes the cluster of the simulated kind.
func (w *world) made(doc config.ClusterDocument) {
	w.t.Helper()
	if _, err := w.clusters.Create(w.t.Context(), doc, kindcluster.Options{}, ui.Discard{}); err != nil {
		w.t.Fatal(err)
	}
}

// plant adds objects to the API server.
func (w *world) plant(manifests string) {
	w.t.Helper()
	if err := w.server.Plant(manifests); err != nil {
		w.t.Fatal(err)
	}
}

// documents parses the documents of a cluster with these fields of its spec, and of nodes. The text of a
// node is its spec.
func (w *world) documents(spec string, nodes ...string) (config.ClusterDocument, []config.Document) {
	w.t.Helper()
	text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\nspec: {" + spec + "}\n"
	for i, node := range nodes {
		text += fmt.Sprintf("---\napiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: win-%d}\nspec: {%s}\n",
			i+1, node)
	}
	doc, documents, err := config.LoadAll([]string{config.Stdin}, strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return doc, documents
}

func (w *world) options() overview.Options {
	return overview.Options{
		Machines: w.machines,
		Clusters: func(context.Context) (*kindcluster.Clusters, error) { return w.clusters, nil },
		OnNodes: func(ctx context.Context, _ overview.OfNode) []fleet.Result[overview.Found] {
			var all []fleet.Result[overview.Found]
			for _, doc := range w.nodes {
				all = append(all, fleet.Result[overview.Found]{Document: doc, Value: w.found[doc.Node.Metadata.Name],
					Err: w.failures[doc.Node.Metadata.Name]})
			}
			return all
		},
	}
}

// look returns the report and its text, as a terminal without colours gets it.
func (w *world) look(doc config.ClusterDocument, nodes []config.Document) (overview.Report, string, error) {
	w.t.Helper()
	w.nodes = nodes
	report, err := overview.Look(w.t.Context(), doc, nodes, w.options())
	return report, text(w.t, report, false), err
}

func text(t *testing.T, report overview.Report, wide bool) string {
	t.Helper()
	var out bytes.Buffer
	page := ui.NewPage(&out, false)
	page.Wide = wide
	if err := errors.Join(report.WriteText(page), page.Flush()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// reached is the state of a node on which a kubelet and containerd run.
func reached(name, object string) overview.Found {
	return overview.Found{Object: object, Status: push.NodeStatus{
		Name: name, Result: fleet.OK, OS: push.OS{Product: "Windows Server 2022 Datacenter", Build: "20348.2849"},
		Components: []push.ComponentStatus{
			{Name: "containerd", Service: &push.Service{Name: "containerd", State: "running"}},
			{Name: "kubelet", Service: &push.Service{Name: "kubelet", State: "running"}},
			{Name: "crictl"},
		},
	}}
}

// object is a Node object with a condition Ready.
func object(name, status, message string) string {
	return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + "}\nstatus:\n  conditions: [{type: Ready, status: '" +
		status + "', reason: KubeletNotReady, message: \"" + message + "\"}]\n" +
		"  nodeInfo: {kubeletVersion: v1.36.3, operatingSystem: windows}\n"
}

const (
	ofKind = "controlPlane: {kind: {}}, network: {plugin: none}"
	joins  = "credentials: {hostname: 192.168.122.5, username: Administrator}, kubernetes: {version: 1.36.3, " +
		"containerd: {version: 1.7.12}}"
	noJoin    = "credentials: {hostname: 192.168.122.5, username: Administrator}"
	noCluster = "cluster dev could not be asked"
)

// Each state of a Node object and of the connection to its machine.
func TestNodes(t *testing.T) {
	unreached := errors.New("connect to 192.168.122.5: connection refused")
	for name, c := range map[string]struct {
		spec    string
		planted string
		found   overview.Found
		err     error
		want    overview.Kubernetes
		row     []string // parts of the node's row
		failed  bool
	}{
		"Ready": {spec: joins, planted: object("win-1", "True", "fine"), found: reached("win-1", "win-1"),
			want: overview.Kubernetes{Node: "win-1", Registered: true, Ready: true, State: "Ready", KubeletVersion: "v1.36.3"},
			row:  []string{"Server 2022 Datacenter 20348.2849", "2 running", "Ready, v1.36.3"}},
		"not Ready": {spec: joins, planted: object("win-1", "False", "cni plugin not initialized"),
			found: reached("win-1", "win-1"),
			want: overview.Kubernetes{Node: "win-1", Registered: true, KubeletVersion: "v1.36.3",
				State: "NotReady (KubeletNotReady): cni plugin not initialized"},
			row: []string{"2 running", "NotReady (KubeletNotReady): cni plugin not initialized"}, failed: true},
		"not joined yet": {spec: joins, found: reached("win-1", "win-1"),
			want: overview.Kubernetes{Node: "win-1", State: "not registered"}, row: []string{"not registered"}, failed: true},
		"not to be joined": {spec: noJoin, found: reached("win-1", "win-1"), want: overview.Kubernetes{Node: "win-1"},
			row: []string{"2 running"}},
		"joined by another tool": {spec: noJoin, planted: object("win-1", "True", "fine"), found: reached("win-1", "win-1"),
			want: overview.Kubernetes{Node: "win-1", Registered: true, Ready: true, State: "Ready", KubeletVersion: "v1.36.3"},
			row:  []string{"Ready, v1.36.3"}},
		"a name of its own": {spec: strings.Replace(joins, "kubernetes: {", "kubernetes: {join: {nodeName: other}, ", 1),
			planted: object("other", "True", "fine"), err: unreached,
			want: overview.Kubernetes{Node: "other", Registered: true, Ready: true, State: "Ready", KubeletVersion: "v1.36.3"},
			row:  []string{"not reached", "Ready, v1.36.3"}},
		"not reached, and its name is not known": {spec: joins, planted: object("win-1", "True", "fine"), err: unreached,
			want: overview.Kubernetes{Error: "the node could not be asked for the name of its Node object"},
			row:  []string{"not reached", "unknown: the node could not be asked for the name"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			doc, nodes := w.documents(ofKind, c.spec)
			w.made(doc)
			if c.planted != "" {
				w.plant(c.planted)
			}
			w.found["win-1"], w.failures["win-1"] = c.found, c.err
			report, text, err := w.look(doc, nodes)
			if diff := cmp.Diff(c.want, report.Nodes[0].Kubernetes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			row := line(text, "win-1")
			for _, part := range c.row {
				if !strings.Contains(row, part) {
					t.Errorf("the row of win-1 lacks %q: %s", part, row)
				}
			}
			if report.Failed() != c.failed {
				t.Errorf("Failed is %t", report.Failed())
			}
			expectUnknown(t, err, c.err)
		})
	}
}

// expectUnknown checks that an error lists exactly one part, whose cause is err, or nothing if err is nil.
func expectUnknown(t *testing.T, got, err error) {
	t.Helper()
	var unknown *overview.UnknownError
	switch {
	case err == nil && got != nil:
		t.Errorf("got %v", got)
	case err == nil:
	case !errors.As(got, &unknown) || len(unknown.Parts) != 1 || !errors.Is(unknown.Parts[0].Err, err):
		t.Errorf("got %v, want one unknown part with %v", got, err)
	}
}

// line returns the line of a text that begins with a word; "" if there is none.
func line(text, word string) string {
	for one := range strings.Lines(text) {
		if strings.HasPrefix(one, word+" ") || strings.HasPrefix(one, word+":") {
			return strings.TrimSuffix(one, "\n")
		}
	}
	return ""
}

// The services of a node are counted if all run; otherwise those that do not run are named.
func TestServices(t *testing.T) {
	component := func(name, state string) push.ComponentStatus {
		return push.ComponentStatus{Name: name, Service: &push.Service{Name: name, State: state}}
	}
	for want, components := range map[string][]push.ComponentStatus{
		"none":                           {{Name: "crictl"}},
		"1 running":                      {component("kubelet", "running")},
		"containerd stopped":             {component("containerd", "stopped"), component("kubelet", "running")},
		"containerd stopped, kubelet st": {component("containerd", "stopped"), component("kubelet", "startPending")},
	} {
		w := newWorld(t)
		doc, nodes := w.documents(ofKind, noJoin)
		w.made(doc)
		found := reached("win-1", "win-1")
		found.Status.Components = components
		w.found["win-1"] = found
		_, text, err := w.look(doc, nodes)
		if err != nil || !strings.Contains(line(text, "win-1"), want) {
			t.Errorf("%v: the row lacks %q: %s", err, want, line(text, "win-1"))
		}
	}
}

// A control plane that cannot be asked hides neither the nodes nor the VMs.
func TestAControlPlaneThatCannotBeAsked(t *testing.T) {
	noRuntime := errors.New("no container runtime answers")
	for name, c := range map[string]struct {
		change func(*world, *overview.Options)
		want   error
		says   string
	}{
		"no cluster": {func(*world, *overview.Options) {}, kindcluster.ErrNoCluster, "there is no cluster dev"},
		"no container runtime": {func(_ *world, o *overview.Options) {
			o.Clusters = func(context.Context) (*kindcluster.Clusters, error) { return nil, noRuntime }
		}, noRuntime, "no container runtime answers"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			doc, nodes := w.documents("controlPlane: {kind: {}}", joins)
			w.nodes, w.found["win-1"] = nodes, reached("win-1", "win-1")
			o := w.options()
			c.change(w, &o)
			report, err := overview.Look(t.Context(), doc, nodes, o)
			expectUnknown(t, err, c.want)
			want := overview.Kubernetes{Node: "win-1", Error: noCluster}
			if diff := cmp.Diff(want, report.Nodes[0].Kubernetes); diff != "" {
				t.Errorf("node (-want +got):\n%s", diff)
			}
			got := text(t, report, false)
			for prefix, part := range map[string]string{
				"cluster dev":        c.says,
				"pod network calico": "unknown: " + noCluster,
				"win-1":              "2 running",
			} {
				if !strings.Contains(line(got, prefix), part) {
					t.Errorf("the line of %s lacks %q:\n%s", prefix, part, got)
				}
			}
			if report.Failed() {
				t.Error("an unknown part counts as a finding")
			}
		})
	}
}

// An API server that refuses the question for Nodes leaves the rest of the report known.
func TestNodesThatMayNotBeListed(t *testing.T) {
	w := newWorld(t)
	doc, nodes := w.documents(ofKind, joins)
	w.made(doc)
	w.found["win-1"] = reached("win-1", "win-1")
	w.server.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if r.Resource == "nodes" && r.Verb == "list" {
			return apiserver.Forbid()
		}
		return apiserver.Verdict{}
	})
	report, text, err := w.look(doc, nodes)
	var unknown *overview.UnknownError
	if !errors.As(err, &unknown) || len(unknown.Parts) != 1 || unknown.Parts[0].Name != "Nodes of the cluster" {
		t.Errorf("got %v, want the Nodes as the only unknown part", err)
	}
	if report.Cluster.Result != fleet.OK || report.Network.Result != fleet.OK {
		t.Errorf("the cluster is %+v, the network %+v", report.Cluster, report.Network)
	}
	if row := line(text, "win-1"); report.Nodes[0].Kubernetes.Error == "" || !strings.Contains(row, "unknown: ") {
		t.Errorf("the Node's state is not unknown: %+v\n%s", report.Nodes[0].Kubernetes, row)
	}
}

// Every VM has a state, also one that is not made yet. A node without a VM has none.
func TestMachines(t *testing.T) {
	w := newWorld(t)
	vms := "machine: {driver: simulated}"
	doc, nodes := w.documents(ofKind, vms, vms, vms, noJoin)
	w.made(doc)
	for i, start := range []bool{true, false} {
		if _, err := w.machines.Create(t.Context(), nodes[i], ui.Discard{}); err != nil {
			t.Fatal(err)
		}
		if start {
			if _, err := w.machines.Start(t.Context(), "win-1", ui.Discard{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range nodes {
		w.failures[nodes[i].Node.Metadata.Name] = errors.New("no SSH server")
	}
	report, text, err := w.look(doc, nodes)
	var unknown *overview.UnknownError
	if !errors.As(err, &unknown) || len(unknown.Parts) != len(nodes) {
		t.Errorf("got %v, want %d unknown nodes", err, len(nodes))
	}
	if !strings.HasPrefix(err.Error(), "the state of 4 parts is unknown:\n  win-1: no SSH server") {
		t.Errorf("the error is %q", err)
	}
	got := map[string]string{}
	for _, n := range report.Nodes {
		if got[n.Name] = "none"; n.Machine != nil {
			got[n.Name] = string(n.Machine.State)
			if !strings.Contains(line(text, n.Name), got[n.Name]) {
				t.Errorf("the row lacks the VM's state: %s", line(text, n.Name))
			}
		}
	}
	want := map[string]string{"win-1": "running", "win-2": "stopped", "win-3": "absent", "win-4": "none"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	names := []string{"cluster/dev", "node/win-1", "node/win-2", "node/win-3", "node/win-4"}
	if diff := cmp.Diff(names, report.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// A cluster without nodes has no table.
func TestNoNodes(t *testing.T) {
	w := newWorld(t)
	doc, _ := w.documents(ofKind)
	w.made(doc)
	report, text, err := w.look(doc, nil)
	if err != nil || len(report.Nodes) != 0 || report.Nodes == nil {
		t.Errorf("%v, nodes %v", err, report.Nodes)
	}
	if strings.Contains(text, "NODE") {
		t.Errorf("there is a table:\n%s", text)
	}
}
