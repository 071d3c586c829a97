package sandbox

import (
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// SimulatedKubelet returns the kubelet of a simulated machine.
func SimulatedKubelet(m *simulated.Machine) apiserver.Kubelets { return simulatedKubelet{m} }
