package combination_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/combination"
)

const server = "Windows Server Datacenter"

var (
	calico  = combination.Network{Name: "calico", Overlay: true}
	bgp     = combination.Network{Name: "calico", BGP: true}
	flannel = combination.Network{Name: "flannel", Overlay: true}
)

// TestEachCombination finds each row of the table alone, and not on the other side of each of its bounds.
func TestEachCombination(t *testing.T) {
	type subject = combination.Subject
	cases := map[string]struct{ bad, good []subject }{
		"calico-server-2025": {
			[]subject{{Build: "26100.33296", Product: server, Network: calico}, {Build: "26100", Network: calico}},
			[]subject{{Build: "26100.33296", Product: server, Network: flannel}, {Build: "20348.5499", Network: calico}, {Network: calico}},
		},
		"overlay-server-2025": {
			[]subject{{Build: "26100.6898", Product: server, Network: flannel}},
			[]subject{{Build: "26100.6899", Product: server, Network: flannel}, {Build: "26100", Network: flannel},
				{Build: "26100.1742", Network: combination.Network{Name: "antrea"}}},
		},
		"calico-july-2024": {
			[]subject{{Build: "20348.2582", Network: calico}, {Build: "20348.2761", Network: calico}},
			[]subject{{Build: "20348.2581", Network: calico}, {Build: "20348.2762", Network: calico}, {Build: "20348.2700", Network: flannel}},
		},
		"calico-bgp-2024": {
			[]subject{{Build: "20348.2322", Network: bgp}},
			[]subject{{Build: "20348.1970", Network: bgp}, {Build: "20348.2762", Network: bgp}},
		},
		"calico-windows-11": {
			[]subject{{Build: "26200.7171", Product: "Windows 11 Pro", Network: calico}},
			[]subject{{Build: "22000.1", Product: "Windows 11 Pro", Network: calico}},
		},
		"local-endpoint-deleted": {
			[]subject{{Kubernetes: "v1.31.8"}, {Kubernetes: "1.32.4"}, {Kubernetes: "1.33.0"}},
			[]subject{{Kubernetes: "1.30.9"}, {Kubernetes: "1.31.9"}, {Kubernetes: "1.33.1"}, {Kubernetes: "1.36.3"}, {}},
		},
		"load-balancer-not-modified": {
			[]subject{{Build: "26100.33296", Kubernetes: "1.32.5"}, {Build: "26100.33296", Kubernetes: "1.33.1"}},
			[]subject{{Build: "26100.33296", Kubernetes: "1.32.6"}, {Build: "20348.5499", Kubernetes: "1.32.5"}},
		},
		"cimfs": {[]subject{{Snapshotter: "cimfs"}}, []subject{{Snapshotter: "windows"}, {}}},
		"images-server-2025": {
			[]subject{{Build: "26100.33296", Containerd: "1.7.5"}, {Build: "26100.33296", Containerd: "1.6.22"}},
			[]subject{{Build: "20348.5499", Containerd: "1.7.5"}},
		},
		"choice-server-2025": {
			[]subject{{Build: "26100.33296", Containerd: "1.7.12"}, {Build: "26100.33296", Containerd: "v2.1.5"}},
			[]subject{{Build: "26100.33296", Containerd: "2.1.6"}, {Build: "26100.33296"}},
		},
		"sandbox-server-2025": {
			[]subject{{Build: "26100.33296", Containerd: "2.2.9", HyperV: true, DefaultSandbox: true}},
			[]subject{{Build: "26100.33296", Containerd: "2.3.0", HyperV: true, DefaultSandbox: true},
				{Build: "26100.33296", Containerd: "2.2.9", DefaultSandbox: true}, {Build: "26100.33296", Containerd: "2.2.9", HyperV: true}},
		},
	}
	for _, row := range combination.Table() {
		c, ok := cases[row.ID]
		if !ok {
			t.Errorf("row %s has no case", row.ID)
		}
		for _, s := range c.bad {
			if all := combination.Find(s); len(all) != 1 || all[0].What != row.What {
				t.Errorf("%s: %+v finds %+v", row.ID, s, all)
			}
		}
		for _, s := range c.good {
			for _, found := range combination.Find(s) {
				if found.What == row.What {
					t.Errorf("%s: %+v finds it", row.ID, s)
				}
			}
		}
	}
}

// TestEachRowHasItsSource expects the sources of each row, the day on which they were read, and words for people.
func TestEachRowHasItsSource(t *testing.T) {
	var ids []string
	for _, r := range combination.Table() {
		if slices.Contains(ids, r.ID) || len(r.Sources) == 0 || r.Seen == "" || r.What == "" || r.Remedy == "" {
			t.Errorf("%+v", r)
		}
		for _, source := range r.Sources {
			if !strings.HasPrefix(source, "https://") {
				t.Errorf("%s: %q is no URL", r.ID, source)
			}
		}
		ids = append(ids, r.ID)
	}
}

func TestEvidence(t *testing.T) {
	found := combination.Find(combination.On("26100.1742", server).In(flannel))
	const want = "Windows build 26100.1742, pod network flannel (overlay); see https://"
	if len(found) != 1 || !strings.HasPrefix(found[0].Evidence, want) {
		t.Errorf("%+v, want the evidence %q", found, want)
	}
}

// TestPlanned reads the snapshotter and Hyper-V from the configurations of both versions of containerd.
func TestPlanned(t *testing.T) {
	for config, want := range map[string]string{
		"": "",
		"[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'cimfs'\n":                                    "cimfs",
		"[plugins.'io.containerd.grpc.v1.cri'.containerd]\nsnapshotter = 'cimfs'\n":                           "cimfs",
		"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runhcs-wcow-process]\nsnapshotter='a'\n": "a",
	} {
		s := combination.Subject{}.Planned(v1alpha1.Kubernetes{Version: "1.36.3",
			Containerd: v1alpha1.Containerd{Version: "2.3.0", Config: config}})
		if s.Snapshotter != want || s.Containerd != "2.3.0" || s.Kubernetes != "1.36.3" || !s.DefaultSandbox || s.HyperV {
			t.Errorf("%q: %+v", config, s)
		}
	}
}

func TestNetworks(t *testing.T) {
	vxlan := cluster.CNI{Calico: &cluster.Calico{BGP: "Disabled", Pools: []cluster.IPPool{{VXLAN: "Always"}}}}
	routed := cluster.CNI{Calico: &cluster.Calico{BGP: "Enabled", Pools: []cluster.IPPool{{VXLAN: "Never"}}}}
	if is := combination.NetworkOf(vxlan); is != calico {
		t.Errorf("%+v", is)
	}
	if is := combination.NetworkTo("calico", routed); is != bgp {
		t.Errorf("%+v", is)
	}
	for name, want := range map[string]combination.Network{"calico": calico, "flannel": flannel, "antrea": {Name: "antrea"}} {
		if is := combination.NetworkTo(name, cluster.CNI{}); is != want {
			t.Errorf("%s: %+v", name, is)
		}
	}
	hostGateway := cluster.CNI{Flannel: &cluster.Flannel{Backend: "host-gw"}}
	if is := combination.NetworkOf(hostGateway); is.Overlay {
		t.Errorf("%+v", is)
	}
}

func TestDependsOnWindows(t *testing.T) {
	if combination.DependsOnWindows(combination.Subject{Snapshotter: "cimfs", Kubernetes: "1.36.3", Containerd: "2.3.0"}) {
		t.Error("cimfs depends on Windows")
	}
	if !combination.DependsOnWindows(combination.Subject{Network: calico}) {
		t.Error("Calico does not depend on Windows")
	}
}
