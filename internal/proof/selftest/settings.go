package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// tryRegistry writes a value of each usual type, reads it back and removes it.
func tryRegistry(ctx context.Context, t *trial) error {
	for _, value := range []*agentv1.RegistryValue{
		{Name: "text", Type: "REG_SZ", String_: "ünïcödé"},
		{Name: "expanded", Type: "REG_EXPAND_SZ", String_: `%SystemRoot%\x`},
		{Name: "texts", Type: "REG_MULTI_SZ", Strings: []string{"one", "two"}},
		{Name: "number", Type: "REG_DWORD", Integer: 0xfedcba98},
		{Name: "large", Type: "REG_QWORD", Integer: 1 << 40},
		{Name: "bytes", Type: "REG_BINARY", Binary: []byte{0, 1, 255}},
	} {
		if _, err := t.node.Registry.Set(ctx, &agentv1.RegistrySetRequest{Key: registryKey, Value: value}); err != nil {
			return err
		}
		back, err := t.node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: registryKey, Name: value.GetName()})
		if err != nil {
			return err
		}
		if back.GetType() != value.GetType() || back.GetString_() != value.GetString_() ||
			back.GetInteger() != value.GetInteger() || !bytes.Equal(back.GetBinary(), value.GetBinary()) ||
			!slices.Equal(back.GetStrings(), value.GetStrings()) {
			return fmt.Errorf("the registry value %s of type %s came back as %v", value.GetName(), value.GetType(), back)
		}
	}
	list, err := t.node.Registry.List(ctx, &agentv1.RegistryListRequest{Key: registryKey})
	if err != nil {
		return err
	}
	if err := expect("the number of values in the key", len(list.GetValues()), 6); err != nil {
		return err
	}
	_, err = t.node.Registry.Delete(ctx, &agentv1.RegistryDeleteRequest{Key: registryKey, WholeKey: true})
	if err != nil {
		return err
	}
	_, err = t.node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: registryKey, Name: "text"})
	return expectError("the read of a removed value", err, fault.ErrNotExist)
}

// tryEnvironment sets a variable of the machine twice, and removes it.
func tryEnvironment(ctx context.Context, t *trial) error {
	ours := &agentv1.EnvironmentVariable{Name: variable, Value: "one"}
	request := &agentv1.SetEnvironmentRequest{Variables: []*agentv1.EnvironmentVariable{ours}}
	for i, changed := range []bool{true, false} {
		reply, err := t.node.Settings.SetEnvironment(ctx, request)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("the change by setting the variable for time %d", i+1)
		if err := expect(what, reply.GetChanged(), changed); err != nil {
			return err
		}
	}
	got, err := t.variable(ctx)
	if err != nil {
		return err
	}
	if err := expect("the variable's value", got, "one"); err != nil {
		return err
	}
	ours.Remove = true
	if _, err := t.node.Settings.SetEnvironment(ctx, request); err != nil {
		return err
	}
	got, err = t.variable(ctx)
	if err != nil {
		return err
	}
	return expect("the value of the removed variable", got, "")
}

// variable returns the value of our variable, or "".
func (t *trial) variable(ctx context.Context) (string, error) {
	reply, err := t.node.Settings.GetEnvironment(ctx, &agentv1.GetEnvironmentRequest{})
	for _, v := range reply.GetVariables() {
		if strings.EqualFold(v.GetName(), variable) {
			return v.GetValue(), err
		}
	}
	return "", err
}

// tryFirewall adds a rule that allows nothing, since it is disabled, and removes it.
func tryFirewall(ctx context.Context, t *trial) error {
	ours := &agentv1.FirewallRule{Name: rule, Inbound: true, Allow: true, Protocol: "tcp", Ports: "59999",
		Profiles: "any"}
	_, err := t.node.Firewall.Add(ctx, ours)
	if errors.Is(err, fault.ErrNotSupported) || errors.Is(err, fault.ErrNotExist) {
		return impossible("the node has no firewall that can be changed: %v", err)
	}
	if err != nil {
		return err
	}
	reply, err := t.node.Firewall.List(ctx, &agentv1.ListFirewallRulesRequest{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(reply.GetRules(), isOurs)
	if i < 0 {
		return errors.New("the added firewall rule is not listed")
	}
	listed := reply.GetRules()[i]
	for key, value := range map[string]string{"protocol": listed.GetProtocol(), "ports": listed.GetPorts(),
		"profiles": listed.GetProfiles()} {
		t.answer(key, value)
	}
	if listed.GetEnabled() || !listed.GetInbound() || !listed.GetAllow() || listed.GetPorts() != "59999" {
		return fmt.Errorf("the added firewall rule is listed as %v", listed)
	}
	if _, err := t.node.Firewall.Remove(ctx, &agentv1.RemoveFirewallRuleRequest{Name: rule}); err != nil {
		return err
	}
	reply, err = t.node.Firewall.List(ctx, &agentv1.ListFirewallRulesRequest{})
	if err == nil && hasRule(reply.GetRules()) {
		return errors.New("the removed firewall rule is still listed")
	}
	return err
}

func hasRule(rules []*agentv1.FirewallRule) bool { return slices.ContainsFunc(rules, isOurs) }

func isOurs(r *agentv1.FirewallRule) bool { return r.GetName() == rule }
