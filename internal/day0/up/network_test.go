package up

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
)

func clusterOf(t *testing.T, network string) config.ClusterDocument {
	t.Helper()
	doc, err := config.LoadCluster([]string{config.Stdin}, strings.NewReader(
		"apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\n"+
			"spec: {controlPlane: {kind: {}}, network: {"+network+"}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestNetworkOptionsComeFromTheDocument(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	defaults := cni.Settings{Network: cni.Calico, PodCIDR: "10.244.0.0/16", ServiceCIDRs: []string{"10.96.0.0/16"}}
	for name, c := range map[string]struct {
		network string
		want    podnetwork.Options
	}{
		"defaults": {"", podnetwork.Options{Settings: defaults}},
		"version": {
			"version: 3.29.0, sha256: " + hash, podnetwork.Options{Settings: defaults, Version: "3.29.0", SHA256: hash},
		},
		"manifest": {"manifest: calico.yaml, sha256: " + hash, podnetwork.Options{Settings: defaults,
			Manifests: []podnetwork.Manifest{{Source: "calico.yaml", SHA256: hash}}}},
		"flannel": {"plugin: flannel, podSubnet: 10.1.0.0/16, serviceSubnet: 10.2.0.0/16", podnetwork.Options{
			Settings: cni.Settings{Network: cni.Flannel, PodCIDR: "10.1.0.0/16", ServiceCIDRs: []string{"10.2.0.0/16"}}}},
	} {
		got, err := NetworkOptions(clusterOf(t, c.network))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// The pod network is installed once the cluster is there, and before a node joins it.
func TestNetworkIsInstalledBeforeTheJoin(t *testing.T) {
	for network, want := range map[string]string{
		"": "cluster; network after cluster", "plugin: none": "cluster",
	} {
		w := &work{cluster: clusterOf(t, network)}
		var got []string
		for _, s := range w.making() {
			text := s.kind
			for _, needed := range s.needs {
				text += " after " + needed.kind
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", network, diff)
		}
	}
}
