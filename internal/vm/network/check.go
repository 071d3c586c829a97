package network

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Ports at which a Kubernetes node and its cluster reach each other.
const (
	apiServerPort = 6443
	kubeletPort   = 10250
	vxlanPort     = 4789
)

// Connection is a connection that a cluster needs, with its use in words.
type Connection struct {
	Use string
	Packet
}

// Sides are the ends of the connections of a VM that is a node.
type Sides struct {
	VM          netip.Addr
	VMInterface string // your machine's interface towards the VM: the bridge
	VMPort      string // the VM's tap on the bridge; empty if it is not known
	Peer        netip.Addr
	PeerName    string // the name of the peer in messages
	PeerBridge  string // your machine's interface towards the peer
	PeerPort    string // the port of PeerBridge that leads to the peer; empty if it is not known
	APIServerOf bool   // reports whether the peer has the API server
}

// Connections returns the connections that a node and a peer need between them.
func (s Sides) Connections() []Connection {
	to := Packet{
		In: s.VMInterface, InPort: s.VMPort, Out: s.PeerBridge, OutPort: s.PeerPort,
		From: s.VM, To: s.Peer, Protocol: "tcp",
	}
	from := Packet{
		In: s.PeerBridge, InPort: s.PeerPort, Out: s.VMInterface, OutPort: s.VMPort,
		From: s.Peer, To: s.VM, Protocol: "tcp",
	}
	var list []Connection
	if s.APIServerOf {
		to.Port, from.Port = apiServerPort, kubeletPort
		list = append(list, Connection{"the kubelet reaches the API server", to},
			Connection{"kubectl logs and exec reach the kubelet", from})
	}
	to.Protocol, from.Protocol = "udp", "udp"
	to.Port, from.Port = vxlanPort, vxlanPort
	return append(list, Connection{"pods of the VM reach pods of " + s.PeerName + " (VXLAN)", to},
		Connection{"pods of " + s.PeerName + " reach pods of the VM (VXLAN)", from})
}

// Problems returns a finding for each connection that the firewall stops, and for each connection
// whose sender's address the firewall replaces.
func (f *Firewall) Problems(connections []Connection) []finding.Problem {
	var problems []finding.Problem
	for _, c := range connections {
		v := f.Judge(c.Packet)
		if v.Passes && v.Hides == "" {
			continue
		}
		p := finding.Problem{Check: "firewall", Where: finding.OnMachine}
		p.Severity, p.Evidence = finding.Error, v.Table+": "+v.Rule
		switch {
		case v.Passes:
			p.Severity, p.Evidence = finding.Warning, v.Table+": "+v.Hides
			p.What = fmt.Sprintf("%s: your machine replaces the sender's address (%s)", c.Use, c.Packet)
			p.Remedy = f.exempt(c.Packet, v)
		case v.Maybe:
			p.Severity = finding.Warning
			p.What = fmt.Sprintf("%s: your firewall may drop %s (%s); the rule, or one before it, has a condition "+
				"that swdt does not know", c.Use, v.dropped(), c.Packet)
			p.Remedy = f.accept(c.Packet, v)
		default:
			p.What = fmt.Sprintf("%s: your firewall drops %s (%s)", c.Use, v.dropped(), c.Packet)
			p.Remedy = f.accept(c.Packet, v)
		}
		problems = append(problems, p)
	}
	return problems
}

// dropped returns words for the packets that do not pass.
func (v Verdict) dropped() string {
	if v.Answer {
		return "the answers"
	}
	return "it"
}

// FiltersBridges reports whether the kernel shows frames between two ports of one bridge
// to the firewall. proc is the file system /proc.
func FiltersBridges(proc fs.FS) bool {
	text, err := fs.ReadFile(proc, "sys/net/bridge/bridge-nf-call-iptables")
	return err == nil && strings.TrimSpace(string(text)) == "1" // no file: the module is not loaded
}

// Proc returns /proc.
func Proc() fs.FS { return os.DirFS("/proc") }
