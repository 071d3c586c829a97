package windows

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const firewallKey = `HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules`

// firewall reads the rules from the registry, since netsh.exe prints them in the machine's
// language. It writes rules with netsh.exe, since the running firewall does not notice changes of
// its registry keys.
type firewall struct {
	netsh     string // full path
	processes platform.Processes
	registry  platform.Registry
}

func (f firewall) Rules(ctx context.Context) ([]platform.FirewallRule, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list firewall rules: %w", err)
	}
	values, _, err := f.registry.List(firewallKey)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list firewall rules: %w", err)
	}
	var rules []platform.FirewallRule
	for _, value := range values {
		if rule, ok := parseRule(value.String); ok {
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

func (f firewall) Add(ctx context.Context, rule platform.FirewallRule) error {
	what := fmt.Sprintf("add firewall rule %q", rule.Name)
	args, err := addArguments(rule)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := f.Remove(ctx, rule.Name); err != nil && !errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("%s: remove the present rule: %w", what, err)
	}
	return f.run(ctx, what, args...)
}

func (f firewall) Remove(ctx context.Context, name string) error {
	what := fmt.Sprintf("remove firewall rule %q", name)
	if err := checkRuleName(name); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	named := func(r platform.FirewallRule) bool { return strings.EqualFold(r.Name, name) }
	if err := f.find(ctx, named); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return f.run(ctx, what, "delete", "rule", "name="+name)
}

func (f firewall) EnableGroup(ctx context.Context, group string, enabled bool) error {
	what := fmt.Sprintf("enable firewall group %q", group)
	if !enabled {
		what = fmt.Sprintf("disable firewall group %q", group)
	}
	member := func(r platform.FirewallRule) bool { return group != "" && strings.EqualFold(r.Group, group) }
	if err := f.find(ctx, member); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return f.run(ctx, what, "set", "rule", "group="+group, "new", "enable="+yesNo(enabled))
}

func (f firewall) find(ctx context.Context, wanted func(platform.FirewallRule) bool) error {
	rules, err := f.Rules(ctx)
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if wanted(rule) {
			return nil
		}
	}
	return fault.ErrNotExist
}

func (f firewall) run(ctx context.Context, what string, args ...string) error {
	args = append([]string{"advfirewall", "firewall"}, args...)
	output, exitCode, err := runTool(ctx, f.processes, f.netsh, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if exitCode != 0 {
		return fmt.Errorf("%s: %w", what, &ToolError{Path: f.netsh, Args: args, ExitCode: exitCode, Output: output})
	}
	return nil
}

// addArguments returns the arguments of netsh.exe that add the rule.
func addArguments(rule platform.FirewallRule) ([]string, error) {
	if err := checkRuleName(rule.Name); err != nil {
		return nil, err
	}
	if rule.Group != "" {
		return nil, fmt.Errorf("netsh.exe cannot add a rule to a group: %w", fault.ErrNotSupported)
	}
	protocol := orAny(rule.Protocol)
	if rule.Ports != "" && protocol != "tcp" && protocol != "udp" {
		return nil, fmt.Errorf("protocol %s has no ports (%s): use tcp or udp", protocol, rule.Ports)
	}
	args := []string{"add", "rule", "name=" + rule.Name,
		"dir=" + choose(rule.Inbound, "in", "out"),
		"action=" + choose(rule.Allow, "allow", "block"),
		"enable=" + yesNo(rule.Enabled),
		"profile=" + orAny(rule.Profiles),
		"protocol=" + protocol,
	}
	for _, condition := range []struct{ name, value string }{
		{"localport", rule.Ports}, {"remoteip", rule.Addresses}, {"program", rule.Program},
	} {
		if condition.value != "" {
			args = append(args, condition.name+"="+condition.value)
		}
	}
	return args, nil
}

// checkRuleName refuses names with a special meaning for netsh.exe: the name
// "all" matches every rule, and a bar ends a field.
func checkRuleName(name string) error {
	if name == "" || strings.EqualFold(name, "all") || strings.ContainsAny(name, "|\"") {
		return fmt.Errorf("firewall rule name %q: it must not be empty or \"all\", and have no bar or quotation "+
			"mark in it", name)
	}
	return nil
}

func orAny(text string) string { return choose(text == "", "any", strings.ToLower(text)) }
func yesNo(yes bool) string    { return choose(yes, "yes", "no") }

func choose(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
