package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// clusterHead is the beginning of a cluster's document.
const clusterHead = "apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\nspec:\n"

// An editor that uses the schema accepts and rejects the same clusters as the loader.
func TestSchemaOfClustersAgreesWithLoader(t *testing.T) {
	schema := compileSchema(t)
	for text, test := range clusterCases() {
		_, err := LoadCluster([]string{Stdin}, strings.NewReader(text))
		if loads := err == nil; loads != test.good {
			t.Errorf("loader: %v, want good: %t, of\n%s", err, test.good, text)
		}
		err = schema.Validate(asJSON(t, text))
		if fits := err == nil; fits != (test.good || test.beyondSchema) {
			t.Errorf("schema: %v, want good: %t, of\n%s", err, test.good || test.beyondSchema, text)
		}
	}
}

func clusterCases() map[string]schemaCase {
	cases := map[string]schemaCase{string(ClusterStarter()): {good: true}}
	add := func(prefix string, result schemaCase, bodies ...string) {
		for _, body := range bodies {
			cases[prefix+body+"\n"] = result
		}
	}
	good, bad, beyond := schemaCase{good: true}, schemaCase{}, schemaCase{beyondSchema: true}

	const kind = "apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\n"
	const minimal = "spec: {controlPlane: {kind: {}}}\n"
	add(kind, good, "metadata: {name: 1a.b-c, labels: {a: b}}\n"+minimal)
	add(kind, bad, minimal, "metadata: {}\n"+minimal, "metadata: {name: A}\n"+minimal, "metadata: {name: dev}",
		"metadata: {name: "+strings.Repeat("a", 51)+"}\n"+minimal, "metadata: {name: dev}\nspec: {}",
		"metadata: {name: dev, namespace: a}\n"+minimal, "metadata: {name: dev}\nstatus: {}\n"+minimal)
	add("kind: Cluster\nmetadata: {name: dev}\n"+minimal, bad, "", "apiVersion: windows.k8s.io/v1", "apiVersion:")

	add(clusterHead, good, "  controlPlane: {kind: {}}", "  controlPlane: {existing: {}}",
		"  controlPlane: {kind: {}, existing: }", "  controlPlane: {existing: {kubeconfig: a, context: b}}")
	add(clusterHead, bad, "  controlPlane:", "  controlPlane: {}", "  controlPlane: {kind: }", "  controlPlane: kind",
		"  controlPlane: {kind: {}, existing: {}}", "  controlPlane: {minikube: true}", "  controlPlane: {kind: true}",
		"  controlPlane: {existing: {kubeconfig: [a]}}", "  controlPlane: {existing: {workers: 1}}",
		"  controlPlane: [kind]", "  controlPlane: {kind: {}}\n  workload: {}", "  controlPlane: {kind: {}}\n  version: v1")

	const inKind = clusterHead + "  controlPlane:\n    kind:\n      "
	add(inKind, good, "image: kindest/node:v1.36.3@sha256:"+strings.Repeat("a", 64), "workers: 20", "runtime: podman",
		"runtime:", "apiServerAddress: 192.168.122.1", "apiServerAddress: '::1'", "apiServerPort: 6443",
		"apiServerNames: [cluster.example, 10.0.0.1, '*.example']", "images: [my-app:dev]",
		"registryMirrors: [{registry: docker.io, endpoints: ['http://172.18.0.1:5000', HTTPS://h/v2/p]}]",
		"registryMirrors: [{registry: _default, endpoints: ['https://localhost.example']}]")
	add(inKind, bad, "image: -x", "image: [a]", "workers: -1", "workers: 21", "workers: '2'", "workers: two",
		"runtime: lxc", "runtime: [docker]", "apiServerAddress: h", "apiServerPort: 65536", "apiServerPort: '6443'",
		"apiServerNames: a", "apiServerNames: [a/b]", "apiServerNames: [a, a]", "images: my-app", "images: ['a b']",
		"images: [a, a]", "worker: 1", "registryMirrors: {}", "registryMirrors: [{registry: docker.io}]",
		"registryMirrors: [{endpoints: ['https://h']}]", "registryMirrors: [{registry: docker.io, endpoints: []}]",
		"registryMirrors: [{registry: 'https://a', endpoints: ['https://h']}]",
		"registryMirrors: [{registry: a, endpoints: [h]}]", "registryMirrors: [{registry: a, endpoints: ['ftp://h']}]",
		"registryMirrors: [{registry: a, endpoints: ['http://:5000']}]",
		"registryMirrors: [{registry: a, endpoints: ['http://me@h']}]",
		"registryMirrors: [{registry: a, endpoints: ['http://h?a=b']}]",
		"registryMirrors: [{registry: a, endpoints: ['http://LocalHost:5000']}]",
		"registryMirrors: [{registry: a, endpoints: ['http://127.0.0.1']}]",
		"registryMirrors: [{registry: a, endpoints: ['http://[::1]:5000/a']}]",
		"registryMirrors: [{registry: a, endpoints: ['http://h'], mirror: b}]")
	add(inKind, beyond, "apiServerAddress: 1.2.3", "apiServerNames: ['1:2']",
		"registryMirrors: [{registry: a, endpoints: ['http://h']}, {registry: a, endpoints: ['http://i']}]")

	const network = clusterHead + "  controlPlane: {kind: {}}\n  network: "
	hash := strings.Repeat("aB", 32)
	add(network, good, "", "{}", "{plugin: none}", "{plugin: flannel, version: 0.28.10}", "{plugin: , version: v3.1}",
		"{podSubnet: 10.0.0.0/8, serviceSubnet: 192.168.0.0/28}", "{manifest: a.yaml, sha256: "+hash+"}", "{sha256: }")
	add(network, bad, "calico", "{plugin: cilium}", "{plugin: [calico]}", "{podSubnet: 10.0.0.0}", "{podSubnet: true}",
		"{podSubnet: 10.0.0.0/25}", "{serviceSubnet: 10.0.0.0/29}", "{podSubnet: 'fd00::/64'}", "{version: 1, manifest: a}",
		"{plugin: none, version: 1}", "{plugin: none, sha256: "+hash+"}", "{sha256: abc}", "{plugins: calico}")
	add(network, beyond, "{podSubnet: 10.0.0.1/8}", "{podSubnet: 999.0.0.0/8}",
		"{podSubnet: 10.0.0.0/8, serviceSubnet: 10.96.0.0/16}")
	const ofExisting = clusterHead + "  controlPlane: {existing: {}}\n  network: "
	add(ofExisting, good, "", "{podSubnet: 10.0.0.0/8}", "{plugin: calico, version: 3.28.5}")
	add(ofExisting, bad, "{version: 3.28.5}", "{plugin: , manifest: a.yaml}")
	return cases
}

// The document of `cluster init` still loads with each commented field: the comments are correct.
func TestClusterStarterWithEveryField(t *testing.T) {
	schema := compileSchema(t)
	var text strings.Builder
	for line := range strings.Lines(string(ClusterStarter())) {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "# "); ok && fieldOrItem(rest) {
			line = line[:len(line)-len(rest)-2] + rest
		}
		text.WriteString(line)
	}
	all := strings.NewReplacer("sha256:…", "sha256:"+strings.Repeat("0", 64)).Replace(text.String())
	before, rest, found := strings.Cut(all, "    existing:\n")
	at := strings.Index(rest, "  # The ranges")
	if !found || at < 0 {
		t.Fatalf("no existing control plane in\n%s", all)
	}
	kind := before + rest[at:]
	existing := before[:strings.Index(before, "    kind:\n")] + "    existing:\n" + rest
	for _, text := range []string{kind, existing} {
		document, err := LoadCluster([]string{Stdin}, strings.NewReader(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if err := schema.Validate(asJSON(t, text)); err != nil {
			t.Errorf("schema: %v of\n%s", err, text)
		}
		spec := document.Cluster.Spec
		if spec.Network.Plugin != v1alpha1.CalicoPlugin {
			t.Errorf("not every field is uncommented: %+v", spec)
		}
		if k := spec.ControlPlane.Kind; k != nil && (len(k.Images) != 1 || len(k.RegistryMirrors) != 1) {
			t.Errorf("not every field of kind is uncommented: %+v", k)
		}
		if e := spec.ControlPlane.Existing; e != nil && e.Context != "admin" {
			t.Errorf("not every field of existing is uncommented: %+v", e)
		}
	}
}

// The schema accepts each cluster of the guides, and agrees with the loader about those of the
// scripts of package cli, some of which are wrong.
func TestSchemaOfPublishedClusters(t *testing.T) {
	schema := compileSchema(t)
	documents := clustersOfGuides(t)
	inGuides := len(documents)
	if inGuides < 3 {
		t.Errorf("the guides have only %d clusters", inGuides)
	}
	for name, text := range clustersOfScripts(t) {
		documents[name] = text
	}
	if len(documents)-inGuides < 15 {
		t.Errorf("the scripts have only %d clusters", len(documents)-inGuides)
	}
	for name, text := range documents {
		_, err := LoadCluster([]string{Stdin}, strings.NewReader(text))
		if strings.HasSuffix(filepath.Dir(name), "guides") && err != nil {
			t.Errorf("%s: loader: %v", name, err)
		}
		if fits := schema.Validate(asJSON(t, text)); (fits == nil) != (err == nil) {
			t.Errorf("%s: loader: %v, schema: %v, of\n%s", name, err, fits, text)
		}
	}
}

// clustersOfGuides returns the whole documents of kind Cluster in the pages for readers, by page and
// number.
func clustersOfGuides(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, one := range block.FindAllStringSubmatch(string(text), -1) {
			addClusters(found, path, one[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// clustersOfScripts returns the documents of kind Cluster in the files of the scripts of package cli.
func clustersOfScripts(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../cli/testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			addClusters(found, filepath.Base(path)+"/"+file.Name, string(file.Data))
		}
	}
	return found
}

// addClusters adds each document of kind Cluster in a text.
func addClusters(found map[string]string, name, text string) {
	for _, c := range splitDocuments(text) {
		ours := strings.Contains(c.text(), "apiVersion: "+v1alpha1.APIVersion+"\n")
		if ours && strings.Contains(c.text(), "\nkind: "+v1alpha1.ClusterKind+"\n") {
			found[fmt.Sprintf("%s %d", name, len(found))] = c.text()
		}
	}
}
