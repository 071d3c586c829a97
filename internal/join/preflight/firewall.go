package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// FirewallRule is an enabled inbound rule. Rules that block only some addresses are
// left out.
type FirewallRule struct {
	Name     string `json:"name"`
	Allow    bool   `json:"allow"`
	Protocol string `json:"protocol"`          // tcp, udp, any, …
	Ports    string `json:"ports,omitempty"`   // such as 10250 or 8000-8100; empty: any port
	Program  string `json:"program,omitempty"` // empty: any
}

// ErrFirewallOff means that the firewall is off in all network profiles, so that its rules have no effect.
var ErrFirewallOff = errors.New("the firewall is off")

// NoRulesError reports an empty list of firewall rules, which must be wrong: every Windows has hundreds of
// rules. Wine lists none.
type NoRulesError struct{}

func (NoRulesError) Error() string { return "the machine lists no firewall rules" }
func (NoRulesError) Unwrap() error { return fault.ErrNotSupported }

// Firewall returns the rules that decide about inbound connections. If there are none to look at, the
// error is a NoRulesError or ErrFirewallOff.
func (l Looker) Firewall(ctx context.Context) ([]FirewallRule, error) {
	if off, err := l.firewallOff(ctx); err != nil {
		return nil, err
	} else if off {
		return nil, ErrFirewallOff
	}
	reply, err := l.Node.Firewall.List(ctx, &agentv1.ListFirewallRulesRequest{})
	if err == nil && len(reply.GetRules()) == 0 {
		err = NoRulesError{}
	}
	rules := []FirewallRule{}
	for _, r := range reply.GetRules() {
		blocksSome := !r.GetAllow() && r.GetAddresses() != "" // the rule blocks only these addresses
		if r.GetEnabled() && r.GetInbound() && !blocksSome {
			rules = append(rules, FirewallRule{Name: r.GetName(), Allow: r.GetAllow(), Protocol: r.GetProtocol(),
				Ports: r.GetPorts(), Program: r.GetProgram()})
		}
	}
	return rules, err
}

const firewallPolicy = `HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy`

// firewallOff reports whether the firewall is off in all network profiles. A profile without the
// value has the firewall on.
func (l Looker) firewallOff(ctx context.Context) (bool, error) {
	for _, profile := range []string{"DomainProfile", "StandardProfile", "PublicProfile"} {
		on, err := l.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: firewallPolicy + `\` + profile,
			Name: "EnableFirewall"})
		if errors.Is(err, fault.ErrNotExist) {
			return false, nil
		}
		if err != nil || on.GetInteger() != 0 {
			return false, err
		}
	}
	return true, nil
}

// Inbound returns whether the rules let a port in. It applies Windows' order: a rule that blocks the port
// overrides all rules that allow it, and a port that no rule allows is blocked. blocks is the first rule
// that blocks the port, or nil.
func Inbound(rules []FirewallRule, protocol string, port uint16) (allowed bool, blocks *FirewallRule) {
	for _, r := range rules {
		if !r.covers(protocol, port) {
			continue
		}
		if !r.Allow {
			return false, &r
		}
		allowed = true
	}
	return allowed, nil
}

// covers reports whether a rule applies to a port.
func (r FirewallRule) covers(protocol string, port uint16) bool {
	if !strings.EqualFold(r.Protocol, protocol) && !strings.EqualFold(r.Protocol, "any") && r.Protocol != "" {
		return false
	}
	// A rule without ports covers all ports, unless it is for one program or package.
	if r.Ports == "" {
		return r.Program == "" && !strings.HasPrefix(r.Name, "@{")
	}
	for part := range strings.SplitSeq(r.Ports, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		low, err := strconv.ParseUint(first, 10, 16)
		high := low
		if ranged && err == nil {
			high, err = strconv.ParseUint(last, 10, 16)
		}
		if err == nil && uint64(port) >= low && uint64(port) <= high {
			return true
		}
	}
	return false
}

// DeleteRule is the remedy for a firewall rule that blocks a port.
func DeleteRule(name string) string {
	return remedy.Command("exec", "--", "netsh", "advfirewall", "firewall", "delete", "rule", "name="+name)
}

func needFirewall(f *facts) error {
	if errors.Is(f.node.firewall.err, ErrFirewallOff) {
		return nil
	}
	return f.node.firewall.err
}

// The kubelet's port, and those of the tunnels between nodes.
const (
	kubeletPort = 10250
	vxlanPort   = 4789
	genevePort  = 6081
)

// lookAtFirewall finds ports of the node that its own firewall closes. The join opens the kubelet's port
// itself, so only a rule that blocks it is a problem.
func lookAtFirewall(f *facts) []finding.Finding {
	if f.node.firewall.err != nil { // the firewall is off
		return nil
	}
	var problems found
	rules := f.node.firewall.value
	if _, blocks := Inbound(rules, "tcp", kubeletPort); blocks != nil {
		problems.warn(fmt.Sprintf("the node's firewall blocks TCP port %d: the API server does not reach the kubelet, for "+
			"kubectl logs and exec, and for metrics", kubeletPort), "rule "+blocks.Name, DeleteRule(blocks.Name))
	}
	network, port := f.tunnel()
	if port == 0 {
		return problems
	}
	switch allowed, blocks := Inbound(rules, "udp", port); {
	case blocks != nil:
		problems.warn(fmt.Sprintf("the node's firewall blocks UDP port %d, %s: pods of other nodes and pods there do not "+
			"reach each other", port, network), "rule "+blocks.Name, DeleteRule(blocks.Name))
	case !allowed:
		problems.warn(fmt.Sprintf("the node's firewall does not let UDP port %d in, %s: pods of other nodes and pods there "+
			"do not reach each other", port, network), "no rule allows it",
			fmt.Sprintf("add {name: %s, protocol: udp, ports: \"%d\"} to spec.setup.firewall: %s applies it", network, port,
				remedy.Command("setup")))
	}
	return problems
}

// tunnel returns the name and the UDP port of the tunnels between the nodes of the cluster; 0 if there are
// none, or if they are not known.
func (f *facts) tunnel() (name string, port uint16) {
	if f.cluster == nil || f.cluster.cni.err != nil {
		return "", 0
	}
	switch cni := f.cluster.cni.value; {
	case cni.Calico != nil && slices.ContainsFunc(cni.Calico.Pools, HasVXLAN):
		return "VXLAN", vxlanPort
	case cni.Flannel != nil && strings.EqualFold(cni.Flannel.Backend, "vxlan"):
		return "VXLAN", vxlanPort // the port that Windows has, whatever flannel has on Linux
	case cni.Antrea != nil && cni.Antrea.Tunnel == "vxlan":
		return "VXLAN", vxlanPort
	case cni.Antrea != nil && cni.Antrea.Tunnel == "geneve":
		return "Geneve", genevePort
	}
	return "", 0
}

// HasVXLAN reports whether a pool of Calico uses VXLAN.
func HasVXLAN(pool cluster.IPPool) bool { return pool.VXLAN != "" && pool.VXLAN != "Never" }
