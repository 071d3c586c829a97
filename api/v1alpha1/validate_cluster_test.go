package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// cluster returns a valid cluster with its defaults.
func cluster() *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ClusterKind}
	c.Metadata.Name = "dev"
	c.Spec.ControlPlane.Kind = &v1alpha1.KindControlPlane{}
	v1alpha1.SetClusterDefaults(c)
	return c
}

// existingCluster returns a valid cluster that swdt does not make, with its defaults.
func existingCluster(kubeconfig, context string) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ClusterKind}
	c.Metadata.Name = "dev"
	c.Spec.ControlPlane.Existing = &v1alpha1.ExistingControlPlane{Kubeconfig: kubeconfig, Context: context}
	v1alpha1.SetClusterDefaults(c)
	return c
}

// swdt installs no second pod network into a cluster that exists, and takes its subnets from it.
func TestDefaultsOfAnExistingCluster(t *testing.T) {
	want := v1alpha1.ClusterNetwork{Plugin: v1alpha1.NoPlugin}
	if diff := cmp.Diff(want, existingCluster("", "").Spec.Network); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValidClusters(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Cluster){
		"defaults": func(*v1alpha1.Cluster) {},
		"everything": func(c *v1alpha1.Cluster) {
			c.Spec.ControlPlane.Kind = &v1alpha1.KindControlPlane{
				Image: "kindest/node:v1.36.3@sha256:0123abc", Workers: 2, Runtime: "podman", APIServerAddress: "192.168.122.1",
				APIServerPort: 6443, APIServerNames: []string{"cluster.example", "10.0.0.1", "*.example"},
				Images: []string{"busybox", "ghcr.io/a/b:v1"},
				RegistryMirrors: []v1alpha1.RegistryMirror{
					{Registry: "docker.io", Endpoints: []string{"http://172.18.0.1:5000", "https://harbor.example/v2/proxy"}},
					{Registry: "localhost:5001", Endpoints: []string{"http://registry:5000"}},
					{Registry: "_default", Endpoints: []string{"https://mirror.example"}},
				},
			}
			c.Spec.Network = v1alpha1.ClusterNetwork{
				PodSubnet: "192.168.0.0/19", ServiceSubnet: "10.96.0.0/12", Plugin: "flannel", Version: "0.28.10",
				SHA256: strings.Repeat("0a", 32),
			}
		},
		"existing": func(c *v1alpha1.Cluster) { *c = *existingCluster("", "") },
		"existing with everything": func(c *v1alpha1.Cluster) {
			*c = *existingCluster("~/admin.conf", "admin@prod")
			c.Spec.Network = v1alpha1.ClusterNetwork{PodSubnet: "192.168.0.0/19", Plugin: "calico"}
		},
	} {
		c := cluster()
		change(c)
		if problems := v1alpha1.ValidateCluster(c); len(problems) > 0 {
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

func TestProblemsOfClusters(t *testing.T) {
	const kind = "spec.controlPlane.kind."
	for name, c := range map[string]struct {
		change func(*v1alpha1.Cluster)
		fields []string
	}{
		"version":  {func(c *v1alpha1.Cluster) { c.APIVersion = "v1" }, []string{"apiVersion"}},
		"kind":     {func(c *v1alpha1.Cluster) { c.Kind = "Node" }, []string{"kind"}},
		"no name":  {func(c *v1alpha1.Cluster) { c.Metadata.Name = "" }, []string{"metadata.name"}},
		"a path":   {func(c *v1alpha1.Cluster) { c.Metadata.Name = "../dev" }, []string{"metadata.name"}},
		"no plane": {func(c *v1alpha1.Cluster) { c.Spec.ControlPlane.Kind = nil }, []string{"spec.controlPlane"}},
		"two planes": {func(c *v1alpha1.Cluster) { c.Spec.ControlPlane.Existing = &v1alpha1.ExistingControlPlane{} },
			[]string{"spec.controlPlane.existing"}},
		"existing, subnets": {func(c *v1alpha1.Cluster) {
			*c = *existingCluster("", "")
			c.Spec.Network.PodSubnet, c.Spec.Network.ServiceSubnet = "10.0.0.0/16", "10.0.1.0/24"
		}, []string{"spec.network.serviceSubnet"}},
		"existing, version": {func(c *v1alpha1.Cluster) {
			*c = *existingCluster("", "")
			c.Spec.Network.Version = "3.28.5"
		}, []string{"spec.network.version"}},
		"option":  {func(c *v1alpha1.Cluster) { c.Spec.ControlPlane.Kind.Image = "--privileged" }, []string{kind + "image"}},
		"workers": {func(c *v1alpha1.Cluster) { c.Spec.ControlPlane.Kind.Workers = 21 }, []string{kind + "workers"}},
		"runtime": {func(c *v1alpha1.Cluster) { c.Spec.ControlPlane.Kind.Runtime = "lxc" }, []string{kind + "runtime"}},
		"address": {func(c *v1alpha1.Cluster) { c.Spec.ControlPlane.Kind.APIServerAddress = "localhost" },
			[]string{kind + "apiServerAddress"}},
		"port": {func(c *v1alpha1.Cluster) { c.Spec.ControlPlane.Kind.APIServerPort = 65536 },
			[]string{kind + "apiServerPort"}},
		"names": {func(c *v1alpha1.Cluster) { c.Spec.ControlPlane.Kind.APIServerNames = []string{"a b", "a", "a"} },
			[]string{kind + "apiServerNames[0]", kind + "apiServerNames[2]"}},
		"overlap": {func(c *v1alpha1.Cluster) { c.Spec.Network.ServiceSubnet = "10.244.128.0/17" },
			[]string{"spec.network.serviceSubnet"}},
		"small": {func(c *v1alpha1.Cluster) { c.Spec.Network.PodSubnet = "10.244.0.0/25" },
			[]string{"spec.network.podSubnet"}},
		"within": {func(c *v1alpha1.Cluster) { c.Spec.Network.PodSubnet = "10.244.0.1/16" },
			[]string{"spec.network.podSubnet"}},
		"images": {func(c *v1alpha1.Cluster) { c.Spec.ControlPlane.Kind.Images = []string{"a", "-o/etc", "a"} },
			[]string{"spec.controlPlane.kind.images[1]", "spec.controlPlane.kind.images[2]"}},
		"mirrors": {
			func(c *v1alpha1.Cluster) {
				c.Spec.ControlPlane.Kind.RegistryMirrors = []v1alpha1.RegistryMirror{
					{Registry: "../etc", Endpoints: []string{"https://mirror.example"}},
					{Registry: "docker.io", Endpoints: []string{
						"mirror.example", "https://me:secret@mirror.example", "https://mirror.example?a=b",
						"http://127.0.0.1:5000", "http://localhost:5000", "file:///etc",
					}},
					{Registry: "docker.io"},
				}
			},
			[]string{
				kind + "registryMirrors[0].registry", kind + "registryMirrors[1].endpoints[0]",
				kind + "registryMirrors[1].endpoints[1]", kind + "registryMirrors[1].endpoints[2]",
				kind + "registryMirrors[1].endpoints[3]", kind + "registryMirrors[1].endpoints[4]",
				kind + "registryMirrors[1].endpoints[5]", kind + "registryMirrors[2].registry",
				kind + "registryMirrors[2].endpoints",
			},
		},
		"plugin": {func(c *v1alpha1.Cluster) { c.Spec.Network.Plugin = "cilium" }, []string{"spec.network.plugin"}},
		"both": {func(c *v1alpha1.Cluster) { c.Spec.Network.Version, c.Spec.Network.Manifest = "3.28.5", "calico.yaml" },
			[]string{"spec.network.manifest"}},
		"hash": {func(c *v1alpha1.Cluster) { c.Spec.Network.SHA256 = "abc" }, []string{"spec.network.sha256"}},
		"none": {func(c *v1alpha1.Cluster) { c.Spec.Network.Plugin, c.Spec.Network.Version = "none", "3.28.5" },
			[]string{"spec.network.version"}},
		"antrea": {func(c *v1alpha1.Cluster) {
			c.Spec.Network = v1alpha1.ClusterNetwork{PodSubnet: c.Spec.Network.PodSubnet, Plugin: "antrea",
				ServiceSubnet: c.Spec.Network.ServiceSubnet, Manifest: "a.yml", WindowsManifest: "w.yml",
				SHA256: strings.Repeat("a", 64), WindowsSHA256: strings.Repeat("b", 64)}
		}, nil},
		"a second hash that is none": {func(c *v1alpha1.Cluster) {
			c.Spec.Network.Plugin, c.Spec.Network.WindowsSHA256 = "antrea", "abc"
		}, []string{"spec.network.windowsSHA256"}},
		"a second manifest alone": {func(c *v1alpha1.Cluster) {
			c.Spec.Network.Plugin, c.Spec.Network.WindowsManifest = "antrea", "w.yml"
		}, []string{"spec.network.windowsManifest"}},
		"a second manifest of calico": {func(c *v1alpha1.Cluster) {
			c.Spec.Network.Manifest, c.Spec.Network.WindowsManifest = "a.yml", "w.yml"
		}, []string{"spec.network.windowsManifest"}},
		"calico since 3.30": {func(c *v1alpha1.Cluster) {
			c.Spec.Network.Manifest, c.Spec.Network.CRDManifest = "a.yaml", "crds.yaml"
			c.Spec.Network.CRDSHA256 = strings.Repeat("a", 64)
		}, nil},
		"CRDs alone": {func(c *v1alpha1.Cluster) { c.Spec.Network.CRDManifest = "crds.yaml" },
			[]string{"spec.network.crdManifest"}},
		"a hash of CRDs alone": {func(c *v1alpha1.Cluster) {
			c.Spec.Network.Manifest, c.Spec.Network.CRDSHA256 = "a.yaml", strings.Repeat("a", 64)
		}, []string{"spec.network.crdSHA256"}},
		"CRDs of flannel": {func(c *v1alpha1.Cluster) {
			c.Spec.Network.Plugin, c.Spec.Network.Manifest, c.Spec.Network.CRDManifest = "flannel", "a.yaml", "crds.yaml"
		}, []string{"spec.network.crdManifest"}},
		"v6": {func(c *v1alpha1.Cluster) { c.Spec.Network.PodSubnet = "fd00::/64" }, []string{"spec.network.podSubnet"}},
	} {
		wrong := cluster()
		c.change(wrong)
		var fields []string
		for _, problem := range v1alpha1.ValidateCluster(wrong) {
			fields = append(fields, problem.Field)
		}
		if diff := cmp.Diff(c.fields, fields); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
