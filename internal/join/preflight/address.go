package preflight

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// OwnAddresses returns the addresses that programs get for the computer's own name: on Windows, those of all its
// adapters. Addresses that kubelet refuses are left out.
func (l Looker) OwnAddresses(ctx context.Context) ([]string, error) {
	facts, err := l.Node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return nil, err
	}
	reply, err := l.Network.Resolve(ctx, &agentv1.ResolveRequest{Name: facts.GetHostname()})
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(reply.GetAddresses()), func(a string) bool { return !UsableAddress(a) }), err
}

// UsableAddress reports whether kubelet accepts an address as that of its node. (kubernetes v1.36.3,
// pkg/kubelet/kubelet_node_status.go, validateNodeIP)
func UsableAddress(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.IsGlobalUnicast()
}

func needAddresses(f *facts) error { return f.node.addresses.err }

// lookAtAddress finds a nodeIP that kubelet refuses, and a machine for which neither the node file nor the way to the
// API server gives an address.
func lookAtAddress(f *facts) []finding.Finding {
	own, wanted := f.node.addresses.value, f.spec.Join.NodeIP
	const without = "without an address of the Node, `kubectl logs` and `exec` fail, and pods that ask for it do not start"
	if wanted != "" {
		foreign := slices.DeleteFunc(strings.Split(wanted, ","), func(a string) bool { return slices.Contains(own, a) })
		if len(own) == 0 || len(foreign) == 0 {
			return nil
		}
		return []finding.Finding{{
			Severity: finding.Warning, What: "kubelet will refuse spec.kubernetes.join.nodeIP, which is not an address of the " +
				"machine: " + strings.Join(foreign, ", "),
			Evidence: "the machine's: " + strings.Join(own, ", "),
			Remedy:   "set it to an address of the machine, or remove it; " + without,
		}}
	}
	reached := false
	for _, t := range f.node.targets {
		reached = reached || t.reach.value.Source != ""
		if UsableAddress(t.reach.value.Source) {
			return nil
		}
	}
	if !reached || len(own) > 0 { // not reached: another check reports it
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Warning, What: "kubelet will find no address for the Node",
		Evidence: "the machine reaches the API server on itself, and its own name has no address",
		Remedy:   "set spec.kubernetes.join.nodeIP to an address of the machine; " + without,
	}}
}
