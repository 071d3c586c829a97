package kindcluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster/kindtest"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

const provided = "images: [app:v1], registryMirrors: [{registry: docker.io, endpoints: [" +
	"'http://172.18.0.1:5000', 'https://harbor.example/v2/proxy']}]"

// created creates a cluster and returns its changes.
func created(t *testing.T, clusters *kindcluster.Clusters, doc config.ClusterDocument) []string {
	t.Helper()
	report, err := clusters.Create(t.Context(), doc, kindcluster.Options{}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if changed := report.Result == fleet.Changed; changed != (len(report.Changes) > 0) {
		t.Errorf("the result is %s, the changes are %q", report.Result, report.Changes)
	}
	return report.Changes
}

func planned(t *testing.T, clusters *kindcluster.Clusters, doc config.ClusterDocument) []string {
	t.Helper()
	plan, err := clusters.Plan(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Changes
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// hostsFile returns the mirrors of docker.io that the simulated node has, or "".
func hostsFile(t *testing.T, k *kindtest.Kind) string {
	t.Helper()
	path := filepath.Join(k.Folder, ".files", "dev-control-plane", "_etc_containerd_certs.d_docker.io_hosts.toml")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

func TestNodesGetTheirImagesAndMirrors(t *testing.T) {
	k := newFake(t)
	k.Images = map[string]string{"app:v1": "sha256:1"}
	clusters, doc := open(t, k, t.TempDir()), document(t, provided)
	const mirrors = "write the mirrors of docker.io on dev-control-plane"
	const image = "load image app:v1 into dev-control-plane"
	expect(t, "plan", planned(t, clusters, doc), "make the cluster with kind",
		"write the mirrors of docker.io on each Linux node", "load image app:v1 into each Linux node")
	expect(t, "create", created(t, clusters, doc), "make the cluster with kind", mirrors, image)
	want := "# written by swdt from registryMirrors of the cluster's document\n" +
		"\n[host.\"http://172.18.0.1:5000\"]\n  capabilities = [\"pull\", \"resolve\"]\n" +
		"\n[host.\"https://harbor.example/v2/proxy\"]\n  capabilities = [\"pull\", \"resolve\"]\n  override_path = true\n"
	if diff := cmp.Diff(want, hostsFile(t, k)); diff != "" {
		t.Errorf("hosts.toml (-want +got):\n%s", diff)
	}
	expect(t, "second plan", planned(t, clusters, doc))
	expect(t, "second create", created(t, clusters, doc))

	k.Images["app:v1"] = "sha256:2" // it was built again
	expect(t, "plan of a new image", planned(t, clusters, doc), image)
	expect(t, "create with a new image", created(t, clusters, doc), image)
	delete(k.Images, "app:v1") // the node still has it
	expect(t, "create without the runtime's image", created(t, clusters, doc))

	less := document(t, "images: [app:v1]")
	const removed = "remove the mirrors of docker.io from dev-control-plane"
	expect(t, "plan without mirrors", planned(t, clusters, less), removed)
	if hostsFile(t, k) == "" {
		t.Error("a plan removed the mirrors")
	}
	expect(t, "create without mirrors", created(t, clusters, less), removed)
	if text := hostsFile(t, k); text != "" {
		t.Errorf("the mirrors are still there:\n%s", text)
	}
	expect(t, "second create without mirrors", created(t, clusters, less))
}

// A node's image may have another ID than the runtime's: one of them is that of a list of platforms.
func TestAnImageWithTwoIDsIsLoadedOnce(t *testing.T) {
	k := newFake(t)
	k.Images = map[string]string{"app:v1": "sha256:1"}
	k.OtherIDs = true
	clusters, doc := open(t, k, t.TempDir()), document(t, "images: [app:v1]")
	created(t, clusters, doc)
	expect(t, "second create", created(t, clusters, doc))
	k.Images["app:v1"] = "sha256:2"
	expect(t, "create with a new image", created(t, clusters, doc), "load image app:v1 into dev-control-plane")
}

func TestFailuresToProvide(t *testing.T) {
	full := errors.New("no space left on device")
	for name, c := range map[string]struct {
		change func(*kindtest.Kind)
		want   string
		made   bool // the cluster stays, since the next create continues
	}{
		"no image": {func(k *kindtest.Kind) { k.Images = nil },
			"-:4: spec.controlPlane.kind.images[0]: no such image: app:v1", false},
		"not saved":  {func(k *kindtest.Kind) { k.Unsaved = full }, full.Error(), true},
		"no mirrors": {func(k *kindtest.Kind) { k.NoMirrors = true }, "use the node image of a newer kind", true},
	} {
		k, folder := newFake(t), t.TempDir()
		k.Images = map[string]string{"app:v1": "sha256:1"}
		c.change(k)
		_, err := open(t, k, folder).Create(t.Context(), document(t, provided), kindcluster.Options{}, ui.Discard{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if k.Has("dev") != c.made {
			t.Errorf("%s: the cluster exists: %v, want %v", name, k.Has("dev"), c.made)
		}
		k.Images, k.Unsaved, k.NoMirrors = map[string]string{"app:v1": "sha256:1"}, nil, false
		if len(created(t, open(t, k, folder), document(t, provided))) == 0 {
			t.Errorf("%s: the next create changed nothing", name)
		}
	}
}

// A create that fails after it has written mirrors has recorded them: a document without them removes
// them.
func TestMirrorsOfAFailedCreateAreRemoved(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	k.Images, k.Unsaved = map[string]string{"app:v1": "sha256:1"}, errors.New("no space left on device")
	_, err := open(t, k, folder).Create(t.Context(), document(t, provided), kindcluster.Options{}, ui.Discard{})
	if !errors.Is(err, k.Unsaved) || hostsFile(t, k) == "" {
		t.Fatalf("the create failed with %v, and has written %q", err, hostsFile(t, k))
	}
	expect(t, "create without mirrors", created(t, open(t, k, folder), document(t, "workers: 0")),
		"remove the mirrors of docker.io from dev-control-plane")
	if text := hostsFile(t, k); text != "" {
		t.Errorf("the mirrors are still there:\n%s", text)
	}
}

// differing returns the differences of a status, without their file and line.
func differing(t *testing.T, clusters *kindcluster.Clusters, doc config.ClusterDocument) []string {
	t.Helper()
	opened, err := clusters.Compare(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, d := range opened.Differences {
		all = append(all, d.Field+" "+d.What+"; "+d.Remedy)
	}
	return all
}

// The status finds the images and the mirrors that a node lacks, with remedies that work, and changes
// nothing.
func TestStatusComparesImagesAndMirrors(t *testing.T) {
	const spec = "spec.controlPlane.kind."
	k := newFake(t)
	k.Images = map[string]string{"app:v1": "sha256:1"}
	clusters, bare, doc := open(t, k, t.TempDir()), document(t, "workers: 0"), document(t, provided)
	created(t, clusters, bare)
	expect(t, "without fields", differing(t, clusters, bare))
	expect(t, "new fields", differing(t, clusters, doc),
		spec+"registryMirrors[0] containerd on dev-control-plane does not have these mirrors of docker.io; "+
			"`swdt cluster create` writes them",
		spec+"images[0] app:v1 is not on dev-control-plane; `swdt cluster create` loads it")
	if text := hostsFile(t, k); text != "" {
		t.Errorf("the status wrote mirrors:\n%s", text)
	}
	delete(k.Images, "app:v1")
	expect(t, "an image that is nowhere", differing(t, clusters, document(t, "images: [app:v1]")),
		spec+"images[0] app:v1 is neither on dev-control-plane nor in the container runtime; "+
			"build or pull it, or remove it from the list")

	k.Images["app:v1"] = "sha256:1"
	created(t, clusters, doc)
	expect(t, "after the remedies", differing(t, clusters, doc))
	k.Images["app:v1"] = "sha256:2"
	expect(t, "an image that was built again", differing(t, clusters, doc),
		spec+"images[0] app:v1 on dev-control-plane is another build than the container runtime's; "+
			"`swdt cluster create` loads it again")
	delete(k.Images, "app:v1")
	expect(t, "an image that only the node has", differing(t, clusters, doc))

	other := document(t, "registryMirrors: [{registry: docker.io, endpoints: ['http://172.18.0.1:5001']}]")
	expect(t, "another mirror", differing(t, clusters, other),
		spec+"registryMirrors[0] containerd on dev-control-plane does not have these mirrors of docker.io; "+
			"`swdt cluster create` writes them")
	expect(t, "a mirror that is not wanted any more", differing(t, clusters, bare),
		spec+"registryMirrors has no mirrors of docker.io, but the cluster has some of an earlier document; "+
			"`swdt cluster create` removes them")
	created(t, clusters, bare)
	expect(t, "after its remedy", differing(t, clusters, bare))
}

// An image with one ID in the container runtime and another on the node is not a difference.
func TestStatusKnowsImagesWithTwoIDs(t *testing.T) {
	k := newFake(t)
	k.Images, k.OtherIDs = map[string]string{"app:v1": "sha256:1"}, true
	clusters, doc := open(t, k, t.TempDir()), document(t, "images: [app:v1]")
	created(t, clusters, doc)
	expect(t, "status", differing(t, clusters, doc))
}
