package combination

import (
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
)

// On returns the subject of a Windows with a build such as 26100.1742.
func On(build, product string) Subject { return Subject{Build: build, Product: product} }

// In returns s with a pod network.
func (s Subject) In(n Network) Subject {
	s.Network = n
	return s
}

// Planned returns s with what a node file asks for.
func (s Subject) Planned(spec v1alpha1.Kubernetes) Subject {
	s.Containerd, s.Kubernetes = spec.Containerd.Version, spec.Version
	s.Snapshotter = snapshotterIn([]byte(spec.Containerd.Config))
	s.HyperV = WantsHyperV(spec)
	s.DefaultSandbox = spec.Containerd.PauseImage == ""
	return s
}

// WantsHyperV reports whether containerd is configured to isolate pods by Hyper-V.
func WantsHyperV(spec v1alpha1.Kubernetes) bool {
	return strings.Contains(spec.Containerd.Config, hyperVRuntime)
}

// hyperVRuntime is the name of containerd's runtime that isolates pods by Hyper-V.
const hyperVRuntime = "runhcs-wcow-hypervisor"

// snapshotterIn returns the snapshotter that a configuration of containerd 1 or 2 sets, for all pods or for those of
// one runtime; "" if it sets none.
func snapshotterIn(config []byte) string {
	places := [][]string{
		{"plugins", "io.containerd.cri.v1.images", "snapshotter"},
		{"plugins", "io.containerd.grpc.v1.cri", "containerd", "snapshotter"},
	}
	for _, plugin := range []string{"io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"} {
		for _, runtime := range []string{"runhcs-wcow-process", hyperVRuntime} {
			places = append(places, []string{"plugins", plugin, "containerd", "runtimes", runtime, "snapshotter"})
		}
	}
	for _, place := range places {
		if found := containerdconfig.Text(config, place...); found != "" {
			return found
		}
	}
	return ""
}

// NetworkOf returns the pod network that a cluster has; the zero Network if it has none that swdt knows.
func NetworkOf(found cluster.CNI) Network {
	switch {
	case found.Calico != nil:
		tunnels := slices.ContainsFunc(found.Calico.Pools, func(p cluster.IPPool) bool {
			return p.VXLAN != "" && p.VXLAN != "Never"
		})
		return Network{Name: v1alpha1.CalicoPlugin, Overlay: tunnels, BGP: found.Calico.BGP == "Enabled"}
	case found.Flannel != nil:
		return Network{Name: v1alpha1.FlannelPlugin, Overlay: strings.EqualFold(found.Flannel.Backend, "vxlan")}
	case found.Antrea != nil: // Open vSwitch makes its tunnels, not HNS
		return Network{Name: v1alpha1.AntreaPlugin}
	}
	return Network{}
}

// NetworkTo returns the pod network that `swdt network install` makes of the one that a cluster has. Calico and flannel
// get VXLAN without BGP.
func NetworkTo(name string, found cluster.CNI) Network {
	if is := NetworkOf(found); is.Name == name {
		return is
	}
	return Network{Name: name, Overlay: name == v1alpha1.CalicoPlugin || name == v1alpha1.FlannelPlugin}
}
