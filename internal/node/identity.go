package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/commandline"
	"github.com/swdt-dev/swdt/internal/host"
)

// SystemUUID is the machine's identity as kubelet gives it to the Node object,
// which tells two machines of one name apart.
func (n *Node) SystemUUID(ctx context.Context) (string, error) {
	value, err := n.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: `HKLM\SYSTEM\HardwareConfig`, Name: "LastConfig"})
	if err != nil {
		return "", fmt.Errorf("read the machine's UUID: %w", err)
	}
	return strings.Trim(value.GetString_(), "{}"), nil
}

// ObjectName is what the machine's Node object is called, or is going to be: as
// the node file says, else as the kubelet that is there was told, else by the
// machine's own name.
func (n *Node) ObjectName(ctx context.Context, join v1alpha1.Join) (string, error) {
	if join.NodeName != "" {
		return join.NodeName, nil
	}
	service, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "kubelet"})
	if err != nil && !errors.Is(err, host.ErrNoService) {
		return "", fmt.Errorf("look at the service kubelet: %w", err)
	}
	if told := commandline.Flag(service.GetConfig().GetCommandLine(), "hostname-override"); told != "" {
		return ObjectNameOf(told), nil
	}
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return "", fmt.Errorf("ask for the machine's name: %w", err)
	}
	return ObjectNameOf(facts.GetHostname()), nil
}

// ObjectNameOf is what kubelet makes of a machine's name, or of that which it is
// told.
func ObjectNameOf(hostname string) string { return strings.ToLower(strings.TrimSpace(hostname)) }

// LikelyObjectName is for who cannot ask the machine: as its node file says, else
// what the node file calls it.
func LikelyObjectName(file v1alpha1.Node) string {
	if name := file.Spec.Kubernetes.Join.NodeName; name != "" {
		return name
	}
	return ObjectNameOf(file.Metadata.Name)
}
