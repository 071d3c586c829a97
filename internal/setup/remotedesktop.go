package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	terminalServer = `HKLM\SYSTEM\CurrentControlSet\Control\Terminal Server`
	denyValue      = "fDenyTSConnections"
	termService    = "TermService"
	// remoteDesktopGroup is the resource id of the firewall group. Unlike the group's name, the id
	// is not localised.
	remoteDesktopGroup = "@FirewallAPI.dll,-28752"
)

// remoteDesktop turns Remote Desktop on or off, as Windows' own settings do: it sets the registry
// value that allows or denies connections, and turns the firewall group on or off. In most
// installations, Windows itself starts the service TermService. If the service is stopped or
// disabled, turning Remote Desktop on also sets the service to start at boot, and starts it.
// Turning Remote Desktop off leaves the service as it is, since the registry value makes the
// service refuse connections.
type remoteDesktop struct {
	node   *node.Node
	enable bool
}

func (s remoteDesktop) Name() string { return "Remote Desktop" }

// remoteDesktopDifferences reports which parts differ from the wanted state.
type remoteDesktopDifferences struct {
	registry, stopped, firewall bool
}

func (s remoteDesktop) Plan(ctx context.Context) (plan.Change, error) {
	differs, err := s.compare(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	var parts []string
	for part, needed := range map[string]bool{
		"registry":       differs.registry,
		"service":        differs.stopped,
		"firewall group": differs.firewall,
	} {
		if needed {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return plan.Change{Summary: "is " + onOff(s.enable)}, nil
	}
	slices.Sort(parts)
	return plan.Change{Needed: true, Summary: fmt.Sprintf("turn Remote Desktop %s (%s)", onOff(s.enable),
		strings.Join(parts, ", "))}, nil
}

func (s remoteDesktop) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	differs, err := s.compare(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if differs.registry {
		if err := s.setDeny(ctx, s.node); err != nil {
			return plan.Outcome{}, err
		}
	}
	if differs.stopped {
		if err := s.startService(ctx, s.node); err != nil {
			return plan.Outcome{}, err
		}
	}
	if differs.firewall {
		group := &agentv1.EnableFirewallGroupRequest{Group: remoteDesktopGroup, Enabled: s.enable}
		if _, err := s.node.Firewall.EnableGroup(ctx, group); err != nil {
			return plan.Outcome{}, fmt.Errorf("turn the firewall group %s %s: %w", remoteDesktopGroup,
				onOff(s.enable), err)
		}
	}
	return plan.Outcome{}, nil
}

func (s remoteDesktop) compare(ctx context.Context, n *node.Node) (d remoteDesktopDifferences, err error) {
	value, err := n.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: terminalServer, Name: denyValue})
	switch {
	case errors.Is(err, fault.ErrNotExist):
		d.registry = true
	case err != nil:
		return d, fmt.Errorf("read %s\\%s: %w", terminalServer, denyValue, err)
	default:
		d.registry = value.GetType() != string(platform.RegistryDWord) || value.GetInteger() != s.deny()
	}
	if s.enable {
		service, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: termService})
		if err != nil {
			return d, fmt.Errorf("query the service %s: %w", termService, err)
		}
		d.stopped = service.GetStatus().GetState() != agentv1.ServiceState_SERVICE_STATE_RUNNING ||
			service.GetConfig().GetStartType() == agentv1.StartType_START_TYPE_DISABLED
	}
	d.firewall, err = s.firewallDiffers(ctx, n)
	return d, err
}

// firewallDiffers reports whether a rule for Remote Desktop differs from the wanted state. It
// returns false if Windows has no such rule, since there is nothing to turn on.
func (s remoteDesktop) firewallDiffers(ctx context.Context, n *node.Node) (bool, error) {
	reply, err := n.Firewall.List(ctx, &agentv1.ListFirewallRulesRequest{})
	if err != nil {
		return false, fmt.Errorf("list the firewall's rules: %w", err)
	}
	return slices.ContainsFunc(reply.GetRules(), func(rule *agentv1.FirewallRule) bool {
		return strings.EqualFold(rule.GetGroup(), remoteDesktopGroup) && rule.GetEnabled() != s.enable
	}), nil
}

func (s remoteDesktop) setDeny(ctx context.Context, n *node.Node) error {
	request := &agentv1.RegistrySetRequest{Key: terminalServer, Value: &agentv1.RegistryValue{
		Name: denyValue, Type: string(platform.RegistryDWord), Integer: s.deny(),
	}}
	if _, err := n.Registry.Set(ctx, request); err != nil {
		return fmt.Errorf("set %s\\%s: %w", terminalServer, denyValue, err)
	}
	return nil
}

func (s remoteDesktop) startService(ctx context.Context, n *node.Node) error {
	config := &agentv1.ServiceConfig{Name: termService, StartType: agentv1.StartType_START_TYPE_AUTO}
	if _, err := n.Services.Configure(ctx, config); err != nil {
		return fmt.Errorf("set the service %s to start at boot: %w", termService, err)
	}
	// A service can run although it is disabled. In this case only its start type was wrong, so
	// ErrServiceRunning is not a failure.
	_, err := n.Services.Start(ctx, &agentv1.StartServiceRequest{Name: termService})
	if err != nil && !errors.Is(err, fault.ErrServiceRunning) {
		return fmt.Errorf("start the service %s: %w", termService, err)
	}
	return nil
}

func (s remoteDesktop) deny() uint64 {
	if s.enable {
		return 0
	}
	return 1
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
