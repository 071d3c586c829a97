package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// SystemUUID returns the machine's identity in the format in which kubelet writes it into the Node
// object. Two machines of the same name have different identities.
func (n *Node) SystemUUID(ctx context.Context) (string, error) {
	value, err := n.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: `HKLM\SYSTEM\HardwareConfig`,
		Name: "LastConfig"})
	if err != nil {
		return "", fmt.Errorf("read the machine's UUID: %w", err)
	}
	return strings.Trim(value.GetString_(), "{}"), nil
}

// ObjectName returns the name that the machine's Node object has, or will have: the
// name in the node file, else the name on the command line of an installed kubelet,
// else the machine's own name.
func (n *Node) ObjectName(ctx context.Context, join v1alpha1.Join) (string, error) {
	if join.NodeName != "" {
		return join.NodeName, nil
	}
	service, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "kubelet"})
	if err != nil && !errors.Is(err, fault.ErrNoService) {
		return "", fmt.Errorf("look at the service kubelet: %w", err)
	}
	if override := commandline.Flag(service.GetProgram().GetCommandLine(), "hostname-override"); override != "" {
		return ObjectNameOf(override), nil
	}
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return "", fmt.Errorf("ask for the machine's name: %w", err)
	}
	return ObjectNameOf(facts.GetHostname()), nil
}

// ObjectNameOf returns the name that kubelet derives from a machine's name, or from its
// flag --hostname-override.
func ObjectNameOf(hostname string) string { return strings.ToLower(strings.TrimSpace(hostname)) }

// LikelyObjectName returns the most likely name of the Node object, for callers that cannot ask the
// machine: the name that the node file gives to the Node object, or, without one, the name that the
// node file gives to the machine.
func LikelyObjectName(file v1alpha1.Node) string {
	if name := file.Spec.Kubernetes.Join.NodeName; name != "" {
		return name
	}
	return ObjectNameOf(file.Metadata.Name)
}
