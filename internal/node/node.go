// Package node is the only way to a Windows node: it connects, finds or installs the
// agent, and provides the agent's RPC clients. Commands never use SSH themselves.
//
//   - connect.go, link.go, rpc.go: a connection, the agent's stream on it, calls
//   - carrier/: the contract of a way to a node; sshway.go, sshstage.go: SSH
//   - install.go, restricted.go, tidy.go: the agent on the node
//   - bulk.go, pipe.go, speed.go: further agents on a connection
//   - lost.go, restore.go, reboot.go, retire.go, leave.go: the end of a connection
package node

import (
	"context"
	"sync/atomic"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/carrier"
)

// Node is a connected Windows node. The errors of its clients are errors of package fault
// (errors.Is works), or a *LostError. The texts of these errors do not name the node: the caller
// adds the name.
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

	// Speed is the speed of the link to the node, as measured by transfers.
	Speed Speed

	opts        Options
	way         carrier.Way
	machine     string // the identity of the machine on which this Node has installed the agent
	caller      *caller
	redial      func(context.Context) error // see OnReconnect
	restoring   restoring
	calls       atomic.Int64
	connections atomic.Int64
	connectTook atomic.Int64 // nanoseconds; see Took
	agentTook   atomic.Int64
}

// Agent returns the agent that the node runs.
func (n *Node) Agent() agentbin.Agent { return n.opts.Agent }

// Calls returns the number of calls made to the agent so far.
func (n *Node) Calls() int { return int(n.calls.Load()) }

// ServerVersion returns what the SSH server of the node says about itself, such as SSH-2.0-OpenSSH_for_Windows_9.5. It
// is "" if the node is reached another way, or if the connection is lost.
func (n *Node) ServerVersion() string {
	if n.caller == nil { // a test's stand-in, without a connection
		return ""
	}
	l, err := n.caller.current()
	if err != nil {
		return ""
	}
	if server, ok := l.conn.(interface{ ServerVersion() string }); ok {
		return server.ServerVersion()
	}
	return ""
}

// Names returns the names of the machines and users on the way to the node, for whoever must keep them secret.
func (n *Node) Names() []string {
	if n.way == nil { // a test's stand-in, without a way
		return nil
	}
	return n.way.Names()
}

// Took returns how long the last connection took, and then the start of its agent, including its installation. It
// returns these times once, and zero after that, until the next connection.
func (n *Node) Took() (connect, agent time.Duration) {
	return time.Duration(n.connectTook.Swap(0)), time.Duration(n.agentTook.Swap(0))
}

// Connections returns the number of connections made so far.
func (n *Node) Connections() int { return int(n.connections.Load()) }
