package selftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// The names of everything that claims make on a node.
const (
	// folder is inside swdt's own folder, in which no ordinary account can put or change anything.
	folder      = layout.Root + `\selftest`
	service     = layout.SelftestService
	registryKey = `HKLM\SOFTWARE\swdt-selftest`
	variable    = "SWDT_SELFTEST"
	rule        = "swdt-selftest"

	programPath = folder + `\swdt-selftest.exe`
	logPath     = folder + `\service.log`
)

// artifact is a file, a service or a setting that claims make on the node.
type artifact struct {
	what string
	// recorded is true for a setting. The folder has the record of what was there before.
	recorded bool
	// remove removes it, and reports whether it was there.
	remove func(ctx context.Context, n *node.Node) (found bool, err error)
}

// stopLimit bounds the stop of the throw-away service; after it, the agent ends the process.
const stopLimit = 20 * time.Second

func ourService() artifact {
	return artifact{what: "the service " + service, remove: func(ctx context.Context, n *node.Node) (bool, error) {
		reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: service})
		if errors.Is(err, fault.ErrNoService) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		_, err = n.Services.Stop(ctx, &agentv1.StopServiceRequest{Name: service,
			Timeout: durationpb.New(stopLimit)})
		if err != nil && !errors.Is(err, fault.ErrServiceStopped) {
			if pid := reply.GetStatus().GetPid(); pid != 0 {
				_, _ = n.Processes.Kill(ctx, &agentv1.KillProcessRequest{Pid: pid})
			}
		}
		_, err = n.Services.Delete(ctx, &agentv1.DeleteServiceRequest{Name: service})
		if errors.Is(err, fault.ErrNoService) || errors.Is(err, fault.ErrServiceDeleting) {
			err = nil
		}
		return true, err
	}}
}

func ourFolder() artifact {
	return artifact{what: "the folder " + folder, remove: func(ctx context.Context, n *node.Node) (bool, error) {
		_, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: folder})
		if errors.Is(err, fault.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		_, err = n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: folder, Recursive: true})
		return true, err
	}}
}

func ourKey() artifact {
	return artifact{what: "the registry key " + registryKey, remove: func(ctx context.Context, n *node.Node) (bool, error) {
		_, err := n.Registry.List(ctx, &agentv1.RegistryListRequest{Key: registryKey})
		if errors.Is(err, fault.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		_, err = n.Registry.Delete(ctx, &agentv1.RegistryDeleteRequest{Key: registryKey, WholeKey: true})
		return true, err
	}}
}

func ourVariable() artifact {
	return artifact{what: "the environment variable " + variable, remove: func(ctx context.Context, n *node.Node) (bool, error) {
		reply, err := n.Settings.SetEnvironment(ctx, &agentv1.SetEnvironmentRequest{
			Variables: []*agentv1.EnvironmentVariable{{Name: variable, Remove: true}}})
		return reply.GetChanged(), err
	}}
}

func ourRule() artifact {
	return artifact{what: "the firewall rule " + rule, remove: func(ctx context.Context, n *node.Node) (bool, error) {
		rules, err := n.Firewall.List(ctx, &agentv1.ListFirewallRulesRequest{})
		if err != nil {
			return false, ignore(err, fault.ErrNotSupported, fault.ErrNotExist)
		}
		if !hasRule(rules.GetRules()) {
			return false, nil
		}
		_, err = n.Firewall.Remove(ctx, &agentv1.RemoveFirewallRuleRequest{Name: rule})
		return true, err
	}}
}

func ignore(err error, expected ...error) error {
	for _, e := range expected {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

// sweep removes all things of the claims, and returns what was there. Each thing that needs
// another to be removed, as the service needs its program, is in front of it in the list of its claim. The folder
// stays if a setting could not be put back, since it has the setting's record.
func sweep(ctx context.Context, n *node.Node, claims []Claim) (found []string, err error) {
	done := map[string]bool{}
	var failures []error
	for _, claim := range claims {
		for _, t := range claim.makes {
			if done[t.what] {
				continue
			}
			done[t.what] = true
			there, err := t.remove(ctx, n)
			if there {
				found = append(found, t.what)
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("remove %s: %w", t.what, err))
				done[ourFolder().what] = done[ourFolder().what] || t.recorded
			}
		}
	}
	return found, errors.Join(failures...)
}
