package network

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Ports that a Kubernetes node and its cluster reach each other at.
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
	Peer        netip.Addr
	PeerName    string // the control plane's container
	PeerBridge  string // your machine's interface towards the peer
	APIServerOf bool   // reports whether the peer has the API server
}

// Connections returns the connections that a node and a peer need between them.
func (s Sides) Connections() []Connection {
	to := Packet{In: s.VMInterface, Out: s.PeerBridge, From: s.VM, To: s.Peer, Protocol: "tcp"}
	from := Packet{In: s.PeerBridge, Out: s.VMInterface, From: s.Peer, To: s.VM, Protocol: "tcp"}
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

// Problems returns a finding for each connection that the firewall stops, or whose
// sender it hides.
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
			p.Severity, p.Evidence = finding.Warning, "nat: "+v.Hides
			p.What = fmt.Sprintf("%s: your machine replaces the sender's address (%s)", c.Use, c.Packet)
			p.Remedy = exempt(c.Packet)
		case v.Maybe:
			p.Severity = finding.Warning
			p.What = fmt.Sprintf("%s: your firewall may drop %s (%s); the rule has a condition that swdt does not know",
				c.Use, v.dropped(), c.Packet)
			p.Remedy = f.accept(c.Packet, v)
		default:
			p.What = fmt.Sprintf("%s: your firewall drops %s (%s)", c.Use, v.dropped(), c.Packet)
			p.Remedy = f.accept(c.Packet, v)
		}
		problems = append(problems, p)
	}
	return problems
}

// dropped names the packets that do not pass.
func (v Verdict) dropped() string {
	if v.Answer {
		return "the answers"
	}
	return "it"
}

// accept returns the command that lets a packet through, tried on a copy of the
// firewall. DOCKER-USER is the chain that Docker never changes, but it is not always the
// first.
func (f *Firewall) accept(p Packet, v Verdict) string {
	onBridge := "put the VM on the bridge of kind itself: network mode bridge"
	if p.In == p.Out {
		onBridge = "`sudo sysctl net.bridge.bridge-nf-call-iptables=0`"
	}
	for _, name := range []string{"DOCKER-USER", "FORWARD"} {
		id := chainID{"filter", name}
		if f.chains[id] == nil {
			continue
		}
		allow := fmt.Sprintf("-i %s -o %s -j ACCEPT", p.In, p.Out)
		if v.Answer {
			allow = fmt.Sprintf("-i %s -o %s -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", p.Out, p.In)
		}
		if f.with(id, parseRule(allow, strings.Fields(allow))).Judge(p).Passes {
			return fmt.Sprintf("`sudo iptables -I %s %s`; or %s", name, allow, onBridge)
		}
	}
	return onBridge
}

// with returns a copy of the firewall with one more rule at the top of a chain.
func (f *Firewall) with(id chainID, r rule) *Firewall {
	changed := &Firewall{chains: maps.Clone(f.chains)}
	c := f.chains[id]
	changed.chains[id] = &chain{policy: c.policy, rules: append([]rule{r}, c.rules...)}
	return changed
}

// exempt returns the command that keeps the sender's address.
func exempt(p Packet) string {
	return fmt.Sprintf("`sudo iptables -t nat -I POSTROUTING -s %s -d %s -j RETURN`", p.From, p.To)
}

// firewallTimeout bounds iptables-save, which waits for a lock of the kernel.
const firewallTimeout = 20 * time.Second

// ReadFirewall reads your machine's firewall, which needs root's rights.
func ReadFirewall(ctx context.Context) (*Firewall, error) {
	ctx, cancel := context.WithTimeout(ctx, firewallTimeout)
	defer cancel()
	var out, complaint bytes.Buffer
	command := exec.CommandContext(ctx, "iptables-save")
	command.Stdout, command.Stderr = &out, &complaint
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("run iptables-save: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return ParseFirewall(&out)
}

// FiltersBridges reports whether the kernel shows frames between two ports of one bridge
// to the firewall. proc is the file system /proc.
func FiltersBridges(proc fs.FS) bool {
	text, err := fs.ReadFile(proc, "sys/net/bridge/bridge-nf-call-iptables")
	return err == nil && strings.TrimSpace(string(text)) == "1" // no file: the module is not loaded
}

// Proc returns /proc.
func Proc() fs.FS { return os.DirFS("/proc") }
