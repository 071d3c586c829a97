package agent

import (
	"context"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
)

type firewallService struct {
	agentv1.UnimplementedFirewallServer
	*session
}

func (s *firewallService) List(ctx context.Context, _ *agentv1.ListFirewallRulesRequest) (
	*agentv1.ListFirewallRulesReply, error) {
	rules, err := s.platform.Firewall.Rules(ctx)
	if err != nil {
		return nil, err
	}
	reply := &agentv1.ListFirewallRulesReply{}
	for _, r := range rules {
		reply.Rules = append(reply.Rules, &agentv1.FirewallRule{
			Name: r.Name, Group: r.Group, Enabled: r.Enabled, Inbound: r.Inbound, Allow: r.Allow,
			Protocol: r.Protocol, Ports: r.Ports, Program: r.Program, Profiles: r.Profiles, Addresses: r.Addresses,
		})
	}
	return reply, nil
}

func (s *firewallService) Add(ctx context.Context, r *agentv1.FirewallRule) (*agentv1.AddFirewallRuleReply, error) {
	err := s.platform.Firewall.Add(ctx, platform.FirewallRule{
		Name: r.GetName(), Group: r.GetGroup(), Enabled: r.GetEnabled(), Inbound: r.GetInbound(), Allow: r.GetAllow(),
		Protocol: r.GetProtocol(), Ports: r.GetPorts(), Program: r.GetProgram(), Profiles: r.GetProfiles(),
		Addresses: r.GetAddresses(),
	})
	if err != nil {
		return nil, err
	}
	return &agentv1.AddFirewallRuleReply{}, nil
}

func (s *firewallService) Remove(ctx context.Context, request *agentv1.RemoveFirewallRuleRequest) (
	*agentv1.RemoveFirewallRuleReply, error) {
	if err := s.platform.Firewall.Remove(ctx, request.GetName()); err != nil {
		return nil, err
	}
	return &agentv1.RemoveFirewallRuleReply{}, nil
}

func (s *firewallService) EnableGroup(ctx context.Context, request *agentv1.EnableFirewallGroupRequest) (
	*agentv1.EnableFirewallGroupReply, error) {
	if err := s.platform.Firewall.EnableGroup(ctx, request.GetGroup(), request.GetEnabled()); err != nil {
		return nil, err
	}
	return &agentv1.EnableFirewallGroupReply{}, nil
}
