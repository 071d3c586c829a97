// Package node is the one handle on a Windows node that everything above uses:
// it connects by SSH, finds or installs the agent, and gives its RPC clients.
// Commands never see SSH.
package node

import (
	"context"
	"sync/atomic"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/ssh"
)

// Node is a connected Windows node. Its clients' errors are already those of
// package host (errors.Is works). They leave the node's name to whoever tells of
// them, save a *LostError, which is about the node.
type Node struct {
	Name string

	Machine   agentv1.MachineClient
	Services  agentv1.ServicesClient
	Registry  agentv1.RegistryClient
	Files     agentv1.FilesClient
	Settings  agentv1.SettingsClient
	Processes agentv1.ProcessesClient
	Features  agentv1.FeaturesClient
	Firewall  agentv1.FirewallClient
	Network   agentv1.NetworkClient
	Compute   agentv1.ComputeClient
	Swap      agentv1.SwapClient
	Capture   agentv1.CaptureClient

	// Speed of the way to the node, as far as transfers have measured it.
	Speed Speed

	opts        Options
	target      ssh.Target
	caller      *caller
	redial      func(context.Context) error // see OnReconnect
	again       restoring
	calls       atomic.Int64
	connections atomic.Int64
}

// Calls is the number of calls made to the agent so far.
func (n *Node) Calls() int { return int(n.calls.Load()) }

// Connections is the number of SSH connections made so far.
func (n *Node) Connections() int { return int(n.connections.Load()) }
