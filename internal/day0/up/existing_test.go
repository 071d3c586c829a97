package up

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/existing"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// existingCluster starts an API server and returns the document of its cluster.
func existingCluster(t *testing.T, network string) (*apiserver.Cluster, config.ClusterDocument, Options) {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	folder := t.TempDir()
	if err := server.WriteKubeconfig(filepath.Join(folder, "admin.conf")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "cluster.yaml")
	text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\nspec:\n" +
		"  controlPlane: {existing: {kubeconfig: admin.conf}}\n  network: {" + network + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := config.LoadCluster([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	confirm := func(_ context.Context, things []string) error {
		t.Errorf("down asks about %v", things)
		return nil
	}
	return server, doc, Options{Reporter: discard, Records: t.TempDir(), Confirm: confirm}
}

// writes returns the requests of an API server that change something.
func writes(server *apiserver.Cluster) (all []string) {
	for _, r := range server.Requests() {
		if r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
			all = append(all, r.Verb+" "+r.Resource)
		}
	}
	return all
}

func TestUpAndDownChangeNothingOfAnExistingCluster(t *testing.T) {
	server, doc, o := existingCluster(t, "")
	path := filepath.Join(filepath.Dir(doc.File), "admin.conf")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	message := "Kubernetes " + apiserver.DefaultVersion + " at " + server.Server() + ", not made by swdt"
	for _, o.DryRun = range []bool{true, false} {
		report, err := Up(t.Context(), doc, nil, o)
		if diff := cmp.Diff([]string{"cluster: unchanged " + message}, results(report.Stages)); err != nil || diff != "" {
			t.Errorf("dry run %t: %v (-want +got):\n%s", o.DryRun, err, diff)
		}
	}
	down, err := Down(t.Context(), doc, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cluster dev, which swdt did not make"}, down.Kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if len(down.Stages) > 0 {
		t.Errorf("down has stages: %+v", down.Stages)
	}
	if all := writes(server); len(all) > 0 {
		t.Errorf("requests that change something: %v", all)
	}
	after, err := os.ReadFile(path)
	if diff := cmp.Diff(string(before), string(after)); err != nil || diff != "" {
		t.Errorf("%v: the kubeconfig (-before +after):\n%s", err, diff)
	}
}

func TestAnExistingClusterThatDoesNotAnswer(t *testing.T) {
	server, doc, o := existingCluster(t, "plugin: flannel")
	server.Close()
	report, err := Up(t.Context(), doc, nil, o)
	var unusable *existing.UnusableError
	if !errors.As(err, &unusable) {
		t.Errorf("got %v, want an UnusableError", err)
	}
	want := []string{"cluster: failed ", "network: skipped needs cluster"}
	if diff := cmp.Diff(want, results(report.Stages)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A pod network that does not fit the cluster is a problem of the document, and changes nothing.
func TestNetworkOfAnExistingCluster(t *testing.T) {
	for name, c := range map[string]struct{ network, planted, want string }{
		"another network": {
			"plugin: calico",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-flannel-cfg, namespace: kube-flannel}\n" +
				"data: {net-conf.json: '{}'}\n",
			"spec.network.plugin: is calico, but the cluster has the pod network flannel already, and two do not work " +
				"together; write plugin: none to leave the cluster's network as it is, or remove it before calico is installed",
		},
		"network that swdt does not know": {
			"plugin: flannel",
			"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: cilium, namespace: kube-system}\n",
			"spec.network.plugin: is flannel, but the cluster has the pod network of DaemonSet kube-system/cilium already",
		},
		"other subnet": {
			"plugin: calico, podSubnet: 10.9.0.0/16", "",
			"spec.network.podSubnet: is 10.9.0.0/16, but the addresses of the existing cluster's pods are 192.168.0.0/16",
		},
		"no address for nodes": { // the server listens at loopback
			"plugin: calico", "",
			"spec.network.plugin: cannot be installed: the cluster does not reveal an address of the API server that nodes " +
				"can use; install it with `swdt network install calico --api-server HOST:PORT`, and write plugin: none",
		},
	} {
		server, doc, o := existingCluster(t, c.network)
		if err := server.Plant(c.planted); err != nil {
			t.Fatal(err)
		}
		o.Only = []string{Network}
		_, err := Up(t.Context(), doc, nil, o)
		var wrong *config.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
		if !strings.Contains(err.Error(), doc.File+":6: ") {
			t.Errorf("%s: the error does not name the line: %v", name, err)
		}
		if all := writes(server); len(all) > 0 {
			t.Errorf("%s: requests that change something: %v", name, all)
		}
	}
}

// down could not remove a cluster of kind of which the document does not speak any more.
func TestAnExistingClusterWithTheNameOfOneOfKind(t *testing.T) {
	_, doc, o := existingCluster(t, "")
	n := open(t, o.Records)
	if err := n.change(func(r *record) { r.Cluster = true }); err != nil {
		t.Fatal(err)
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	type command = func(context.Context, config.ClusterDocument, []config.Document, Options) (Report, error)
	for _, run := range []command{Up, Down} {
		_, err := run(t.Context(), doc, nil, o)
		var other *OtherPlaneError
		if !errors.As(err, &other) {
			t.Errorf("got %v, want an OtherPlaneError", err)
		}
	}
}

// A join ends with its VM only if the cluster ends, too: otherwise the cluster would keep the Node.
func TestNodesLeaveAClusterThatStays(t *testing.T) {
	for _, c := range []struct {
		made record
		want string
	}{
		{record{Cluster: true, Machines: []string{"vm"}, Nodes: []string{"vm", "win"}},
			"join of win; machine of vm; cluster after join"},
		{record{Machines: []string{"vm"}, Nodes: []string{"vm", "win"}}, "join of vm; join of win; machine of vm after join"},
	} {
		_, doc, o := existingCluster(t, "")
		w := &work{cluster: doc, Options: o}
		var got []string
		for _, s := range w.removing(c.made) {
			text := label(s.kind, s.node)
			for _, needed := range s.needs {
				text += " after " + needed.kind
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// The cluster decides on all that the document leaves out, and the fields of others stay theirs.
func TestNetworkOptionsOfAnExistingCluster(t *testing.T) {
	_, doc, _ := existingCluster(t, "plugin: calico")
	got, err := NetworkOptions(doc)
	want := podnetwork.Options{Settings: cni.Settings{Network: cni.Calico}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
