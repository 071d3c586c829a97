package setup

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// hostsFile makes names resolve to addresses. Everything else in the node's hosts file
// stays unchanged.
type hostsFile struct {
	node   *node.Node
	wanted []v1alpha1.HostsEntry
}

func (s *hostsFile) Name() string { return "hosts file" }

func (s *hostsFile) Plan(ctx context.Context) (plan.Change, error) {
	missing, err := s.missing(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	if len(missing) == 0 {
		return plan.Change{}, nil
	}
	var parts []string
	for _, entry := range missing {
		parts = append(parts, entry.GetName()+" → "+entry.GetAddress())
	}
	return plan.Change{Needed: true, Summary: "resolve " + strings.Join(parts, ", ")}, nil
}

func (s *hostsFile) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	missing, err := s.missing(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if _, err := s.node.Settings.SetHosts(ctx, &agentv1.SetHostsRequest{Entries: missing}); err != nil {
		return plan.Outcome{}, fmt.Errorf("edit the hosts file: %w", err)
	}
	return plan.Outcome{}, nil
}

// missing returns each wanted entry whose name has no address, another address, or several
// addresses in the hosts file.
func (s *hostsFile) missing(ctx context.Context, n *node.Node) ([]*agentv1.HostsEntry, error) {
	reply, err := n.Settings.GetHosts(ctx, &agentv1.GetHostsRequest{})
	if err != nil {
		return nil, fmt.Errorf("read the hosts file: %w", err)
	}
	found := map[string][]string{}
	for _, entry := range reply.GetEntries() {
		name := strings.ToLower(entry.GetName())
		found[name] = append(found[name], entry.GetAddress())
	}
	var missing []*agentv1.HostsEntry
	for _, entry := range s.entries() {
		addresses := found[strings.ToLower(entry.GetName())]
		if len(addresses) != 1 || !sameAddress(addresses[0], entry.GetAddress()) {
			missing = append(missing, entry)
		}
	}
	return missing, nil
}

// entries returns each name once, with the last address that the node file gives it.
func (s *hostsFile) entries() []*agentv1.HostsEntry {
	var entries []*agentv1.HostsEntry
	at := map[string]int{}
	for _, wanted := range s.wanted {
		for _, name := range wanted.Names {
			entry := &agentv1.HostsEntry{Name: name, Address: wanted.Address}
			if i, ok := at[strings.ToLower(name)]; ok {
				entries[i] = entry
				continue
			}
			at[strings.ToLower(name)] = len(entries)
			entries = append(entries, entry)
		}
	}
	return entries
}

// sameAddress reports whether two addresses are equal, even if they are written differently:
// ::1 equals 0:0:0:0:0:0:0:1.
func sameAddress(a, b string) bool {
	left, leftErr := netip.ParseAddr(a)
	right, rightErr := netip.ParseAddr(b)
	if leftErr != nil || rightErr != nil {
		return strings.EqualFold(a, b)
	}
	return left == right
}
