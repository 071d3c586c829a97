package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// convertFork converts a document of the fork, and returns the cluster and the nodes of the result.
// The result must also fit the schema.
func convertFork(t *testing.T, text string) (string, v1alpha1.ClusterSpec, []Document) {
	t.Helper()
	got, err := Convert(Stdin, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	cluster, nodes, err := LoadAll([]string{Stdin}, strings.NewReader(string(got)))
	if err != nil {
		t.Fatalf("%v in\n%s", err, got)
	}
	schema := compileSchema(t)
	for _, c := range splitDocuments(string(got)) {
		if err := schema.Validate(asJSON(t, c.text())); err != nil {
			t.Errorf("schema: %v of\n%s", err, c.text())
		}
	}
	return string(got), cluster.Cluster.Spec, nodes
}

// The cluster of each published sample of the fork. The goldens of TestConvert have the nodes.
func TestForkGivesACluster(t *testing.T) {
	newCluster := func(image, address string, port int) v1alpha1.ControlPlane {
		return v1alpha1.ControlPlane{Kind: &v1alpha1.KindControlPlane{
			Image: image, APIServerAddress: address, APIServerPort: port,
		}}
	}
	defaults := v1alpha1.ClusterNetwork{
		Plugin: "calico", PodSubnet: v1alpha1.DefaultPodSubnet, ServiceSubnet: v1alpha1.DefaultServiceSubnet,
	}
	calico := defaults
	calico.Version = "v3.27.3"
	existing := v1alpha1.ControlPlane{Existing: &v1alpha1.ExistingControlPlane{}}
	for name, want := range map[string]v1alpha1.ClusterSpec{
		"fork-1-version":    {ControlPlane: newCluster("kindest/node:v1.29.0", "127.0.0.1", 0), Network: defaults},
		"fork-2-privatekey": {ControlPlane: newCluster("kindest/node:v1.29.0", "127.0.0.1", 0), Network: defaults},
		"fork-3-two-versions": {ControlPlane: newCluster("kindest/node:v1.28.3", "192.168.122.1", 6443),
			Network: defaults},
		"fork-4-containerd-version": {ControlPlane: existing, Network: v1alpha1.ClusterNetwork{Plugin: "none"}},
		"fork-5-calico-version": {ControlPlane: newCluster("kindest/node:v1.28.3", "192.168.122.1", 6443),
			Network: calico},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "older", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		_, got, nodes := convertFork(t, string(text))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(nodes) != 1 || nodes[0].Node.Metadata.Name != "config-cluster" {
			t.Errorf("%s: got the nodes %+v", name, nodes)
		}
	}
}

// All that is left is listed with its line and the reason, and only that.
func TestForkListsTheRest(t *testing.T) {
	const head = "kind: Cluster\napiVersion: windows.k8s.io/v1alpha1\nmetadata: {name: Dev, namespace: a}\nspec:\n"
	const vm = "  workload: {virtualization: {kvmQemuURI: "
	for text, want := range map[string][]string{
		head + "  workload: {}\n": {"-:3: metadata.namespace: a; a document has no namespace"},
		head + "  controlPlane: {minikube: true, kubernetesVersion: stable}\n": {
			"-:3: metadata.namespace: a; a document has no namespace",
			"-:5: spec.controlPlane.minikube: true; swdt makes the control plane with kind",
			"-:5: spec.controlPlane.kubernetesVersion: stable; it is not a whole version: " +
				"write the name of kind's image as spec.controlPlane.kind.image",
		},
		head + "  controlPlane: {minikube: false, kubernetesVersion: 1.28.3}\n" + vm + "qemu+ssh://h/system}}\n": {
			"-:3: metadata.namespace: a; a document has no namespace",
			"-:5: spec.controlPlane.kubernetesVersion: 1.28.3; the version of a cluster that swdt does not make is its own",
			"-:6: spec.workload.virtualization.kvmQemuURI: qemu+ssh://h/system; swdt uses the libvirt of your machine: " +
				"qemu:///system or qemu:///session",
		},
		head + "  new: {a: [1, {b: 2}]}\n  calicoVersion: v3.27.3\n": {
			"-:3: metadata.namespace: a; a document has no namespace",
			"-:5: spec.new.a[0]: 1; swdt has no such setting",
			"-:5: spec.new.a[1].b: 2; swdt has no such setting",
		},
	} {
		got, _, nodes := convertFork(t, text)
		_, list, _ := strings.Cut(got, "# Not carried over:\n")
		list, _, _ = strings.Cut(list, "apiVersion:")
		wanted := "#   " + strings.Join(want, "\n#   ") + "\n"
		if diff := cmp.Diff(wanted, list); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if hasNode := strings.Contains(text, "workload"); hasNode != (len(nodes) == 1) {
			t.Errorf("%d nodes of\n%s", len(nodes), text)
		}
		if !strings.Contains(got, "name: dev # in lower case") {
			t.Errorf("the cluster has another name:\n%s", got)
		}
	}
}

// Neither the name of a file nor a field or a value of it can end a comment: the result has only the
// documents that the conversion writes.
func TestConvertedCommentsStayComments(t *testing.T) {
	const field = "a\\n---\\nkind: Node"
	text := "kind: Cluster\nmetadata: {name: a}\nspec:\n  workload: {}\n  \"" + field + "\": \"" + field + "\"\n" +
		"  controlPlane: {minikube: true, kubernetesVersion: \"" + field + "\"}\n"
	name := "a\nkind: Node"
	if runtime.GOOS == "windows" { // has no such file names
		name = "a"
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Convert(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster, nodes, err := LoadAll([]string{Stdin}, strings.NewReader(string(got)))
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d nodes, %v in\n%s", len(nodes), err, got)
	}
	if image := cluster.Cluster.Spec.ControlPlane.Kind.Image; image != "" {
		t.Errorf("the image is %q", image)
	}
	header, _, _ := strings.Cut(string(got), "apiVersion:")
	for line := range strings.Lines(header) {
		if !strings.HasPrefix(line, "#") {
			t.Errorf("not a comment: %q", line)
		}
	}
}
