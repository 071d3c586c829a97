package preflight

import (
	"github.com/swdt-dev/swdt/internal/join/combination"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// lookAtCombinations finds a Windows that is known not to work with the pod network of the cluster, or with the programs
// that the node file names. An unknown pod network finds nothing; the other checks report why it is unknown.
func lookAtCombinations(f *facts) []finding.Finding {
	s := combination.On(f.node.machine.Build, f.node.machine.Product).Planned(f.spec)
	if f.kubelet != "" {
		s.Kubernetes = f.kubelet
	}
	if f.cluster != nil {
		s = s.In(combination.NetworkOf(f.cluster.cni.value))
	}
	return combination.Find(s)
}
