package setup

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// firewallRule ensures that exactly one rule has the wanted name, and that this rule equals the
// wanted rule in every field.
type firewallRule struct {
	node   *node.Node
	wanted *agentv1.FirewallRule
}

// asRule converts a rule of the node file, and fills in the defaults of its fields.
func asRule(rule v1alpha1.FirewallRule) *agentv1.FirewallRule {
	return &agentv1.FirewallRule{
		Name:      rule.Name,
		Enabled:   true,
		Inbound:   !strings.EqualFold(rule.Direction, "out"),
		Allow:     !strings.EqualFold(rule.Action, "block"),
		Protocol:  cmp.Or(strings.ToLower(rule.Protocol), "tcp"),
		Ports:     emptyForAny(rule.Ports),
		Profiles:  cmp.Or(strings.ToLower(rule.Profiles), "any"),
		Addresses: emptyForAny(rule.Addresses),
	}
}

func (s firewallRule) Name() string { return "firewall rule " + s.wanted.GetName() }

func (s firewallRule) Plan(ctx context.Context) (plan.Change, error) {
	reply, err := s.node.Firewall.List(ctx, &agentv1.ListFirewallRulesRequest{})
	if err != nil {
		return plan.Change{}, fmt.Errorf("list the firewall's rules: %w", err)
	}
	var same []*agentv1.FirewallRule
	for _, rule := range reply.GetRules() {
		if strings.EqualFold(rule.GetName(), s.wanted.GetName()) {
			same = append(same, rule)
		}
	}
	switch {
	case len(same) == 0:
		return plan.Change{Needed: true, Summary: describe(s.wanted)}, nil
	case len(same) == 1 && equal(same[0], s.wanted):
		return plan.Change{}, nil
	case len(same) == 1:
		return plan.Change{Needed: true, Summary: fmt.Sprintf("change: %s → %s", describe(same[0]),
			describe(s.wanted))}, nil
	}
	return plan.Change{Needed: true, Summary: fmt.Sprintf("replace %d rules of that name: %s", len(same),
		describe(s.wanted))}, nil
}

func (s firewallRule) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	if _, err := s.node.Firewall.Add(ctx, s.wanted); err != nil {
		return plan.Outcome{}, fmt.Errorf("add the firewall rule: %w", err)
	}
	return plan.Outcome{}, nil
}

// equal reports whether two rules mean the same, even if Windows spells them differently.
func equal(a, b *agentv1.FirewallRule) bool {
	return a.GetEnabled() == b.GetEnabled() &&
		a.GetInbound() == b.GetInbound() &&
		a.GetAllow() == b.GetAllow() &&
		protocol(a.GetProtocol()) == protocol(b.GetProtocol()) &&
		slices.Equal(list(a.GetPorts(), strings.ToLower), list(b.GetPorts(), strings.ToLower)) &&
		strings.EqualFold(a.GetProgram(), b.GetProgram()) &&
		slices.Equal(profiles(a.GetProfiles()), profiles(b.GetProfiles())) &&
		slices.Equal(list(a.GetAddresses(), address), list(b.GetAddresses(), address))
}

func describe(rule *agentv1.FirewallRule) string {
	action, direction, others := "block", "outbound", "to"
	if rule.GetAllow() {
		action = "allow"
	}
	if rule.GetInbound() {
		direction, others = "inbound", "from"
	}
	parts := []string{action, direction, rule.GetProtocol()}
	if rule.GetPorts() != "" {
		parts = append(parts, rule.GetPorts())
	}
	if rule.GetAddresses() != "" {
		parts = append(parts, others, rule.GetAddresses())
	}
	if names := profiles(rule.GetProfiles()); len(names) < 3 {
		parts = append(parts, "on", strings.Join(names, ","))
	}
	if rule.GetProgram() != "" {
		parts = append(parts, "for", rule.GetProgram())
	}
	if !rule.GetEnabled() {
		parts = append(parts, "(disabled)")
	}
	return strings.Join(parts, " ")
}

// protocol returns the name of a protocol that is given as a number or as a name. It returns any
// other number unchanged.
func protocol(name string) string {
	switch name = strings.ToLower(name); name {
	case "6":
		return "tcp"
	case "17":
		return "udp"
	case "1":
		return "icmpv4"
	case "58":
		return "icmpv6"
	case "", "256":
		return "any"
	}
	return name
}

// profiles returns the sorted names of the profiles in a list. For "any" it returns all three
// profiles.
func profiles(names string) []string {
	if emptyForAny(names) == "" {
		return []string{"domain", "private", "public"}
	}
	return list(names, strings.ToLower)
}

// list splits text at commas, makes each element canonical, and sorts them. For "any" it
// returns an empty list.
func list(text string, canonical func(string) string) []string {
	var elements []string
	for element := range strings.SplitSeq(emptyForAny(text), ",") {
		if element = strings.TrimSpace(element); element != "" {
			elements = append(elements, canonical(element))
		}
	}
	slices.Sort(elements)
	return slices.Compact(elements)
}

func emptyForAny(text string) string {
	if text = strings.TrimSpace(text); strings.EqualFold(text, "any") || text == "*" {
		return ""
	}
	return text
}

// address returns an address of a rule in one format. It turns 10.0.0.0/255.255.255.0, the
// registry's format, into 10.0.0.0/24, and a network that has only one address into that address.
// It returns a range or a keyword (LocalSubnet) in lower case.
func address(text string) string {
	host, mask, hasMask := strings.Cut(text, "/")
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return strings.ToLower(text)
	}
	if !hasMask {
		return ip.String()
	}
	bits, ok := maskBits(mask, ip)
	if !ok {
		return strings.ToLower(text)
	}
	if bits == ip.BitLen() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, bits).Masked().String()
}

// maskBits returns the number of bits of a mask such as 24 or 255.255.255.0. It returns false if
// the text is not a mask.
func maskBits(mask string, ip netip.Addr) (int, bool) {
	if prefix, err := netip.ParsePrefix(ip.String() + "/" + mask); err == nil {
		return prefix.Bits(), true
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || m.BitLen() != ip.BitLen() {
		return 0, false
	}
	bits, ended := 0, false
	for _, b := range m.AsSlice() {
		for i := 7; i >= 0; i-- {
			set := b>>i&1 == 1
			if set && ended {
				return 0, false // not a mask
			}
			if set {
				bits++
			} else {
				ended = true
			}
		}
	}
	return bits, true
}
