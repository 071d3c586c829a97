package simulated

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// firewallView implements platform.Firewall for one process, with the rules of `netsh advfirewall firewall`
// ("Use netsh advfirewall firewall" on learn.microsoft.com): the name "all" stands for all rules, and a group that has no
// rule is an error.
type firewallView struct{ p *process }

func (v firewallView) Rules(ctx context.Context) ([]platform.FirewallRule, error) {
	if err := v.p.checkContext(ctx); err != nil {
		return nil, err
	}
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	return slices.Clone(v.p.m.firewall), nil
}

func (v firewallView) Add(ctx context.Context, rule platform.FirewallRule) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.p.do(OpFirewallAdd, rule.Name, func() error {
		if rule.Name == "" || strings.EqualFold(rule.Name, "all") {
			return fmt.Errorf("add firewall rule %q: %w", rule.Name, fault.ErrNotSupported)
		}
		if rule.Profiles == "" {
			rule.Profiles = "any"
		}
		if rule.Protocol == "" {
			rule.Protocol = "any"
		}
		rule.Addresses = storedAddresses(rule.Addresses)
		v.p.m.firewall = slices.DeleteFunc(v.p.m.firewall, named(rule.Name))
		v.p.m.firewall = append(v.p.m.firewall, rule)
		return nil
	})
}

// storedAddresses returns the addresses as the registry has them: Windows writes a subnet of IPv4 with its mask
// ([MS-GPFAS] 2.2.2; RA4=10.0.0.0/255.0.0.0 in rules that others have published).
func storedAddresses(list string) string {
	all := strings.Split(list, ",")
	for i, one := range all {
		if prefix, err := netip.ParsePrefix(strings.TrimSpace(one)); err == nil && prefix.Addr().Is4() {
			all[i] = prefix.Addr().String() + "/" + net.IP(net.CIDRMask(prefix.Bits(), 32)).String()
		}
	}
	return strings.Join(all, ",")
}

func (v firewallView) Remove(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.p.do(OpFirewallRemove, name, func() error {
		if !slices.ContainsFunc(v.p.m.firewall, named(name)) {
			return fmt.Errorf("firewall rule %s: %w", name, fault.ErrNotExist)
		}
		v.p.m.firewall = slices.DeleteFunc(v.p.m.firewall, named(name))
		return nil
	})
}

func (v firewallView) EnableGroup(ctx context.Context, group string, enabled bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.p.do(OpFirewallGroup, group, func() error {
		found := false
		for i := range v.p.m.firewall {
			if rule := &v.p.m.firewall[i]; group != "" && strings.EqualFold(rule.Group, group) {
				rule.Enabled, found = enabled, true
			}
		}
		if !found {
			return fmt.Errorf("firewall group %s: %w", group, fault.ErrNotExist)
		}
		return nil
	})
}

func named(name string) func(platform.FirewallRule) bool {
	return func(r platform.FirewallRule) bool { return strings.EqualFold(r.Name, name) }
}
