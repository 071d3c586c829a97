package node

import (
	"context"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
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
