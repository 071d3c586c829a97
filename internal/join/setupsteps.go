package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// settings runs steps of package setup, as `swdt setup` does, and records the previous
// state.
type settings struct {
	*joining
	name string
	spec v1alpha1.Setup
	// note records the state that the step is about to change.
	note func(ctx context.Context, n *node.Node, r *record) error
}

func (s *settings) Name() string { return s.name }

func (s *settings) steps() []plan.Step { return setup.Steps(s.node, s.spec, setup.Options{}) }

func (s *settings) Plan(ctx context.Context) (plan.Change, error) {
	for _, step := range s.steps() {
		if change, err := step.Plan(ctx); err != nil || change.Needed {
			return change, err
		}
	}
	return plan.Change{}, nil
}

func (s *settings) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	var failed error
	err := update(ctx, s.node, func(r *record) { failed = s.note(ctx, s.node, r) })
	if err = errors.Join(failed, err); err != nil {
		return plan.Outcome{}, err
	}
	for _, step := range s.steps() {
		if outcome, err := step.Apply(ctx, r); err != nil || outcome.RebootRequired {
			return outcome, err
		}
	}
	return plan.Outcome{}, nil
}

// featuresStep returns the step that enables the features that containers need. The step is not
// Undoable: other programs may use a feature, and disabling one takes a reboot.
func featuresStep(j *joining) plan.Step {
	const containers = "Containers"
	note := func(_ context.Context, _ *node.Node, r *record) error {
		if !containsFold(r.Features, containers) {
			r.Features = append(r.Features, containers)
		}
		return nil
	}
	return &settings{j, stepFeatures, v1alpha1.Setup{Features: []string{containers}}, note}
}

// searchPath puts the programs on the machine's PATH.
type searchPath struct{ *settings }

func pathStep(j *joining) plan.Step {
	folders := []string{v1alpha1.KubernetesFolder, containerdBin}
	note := func(ctx context.Context, n *node.Node, r *record) error {
		now, err := machinePath(ctx, n)
		if err != nil {
			return err
		}
		for _, folder := range folders {
			if !containsFold(now, folder) && !containsFold(r.Path, folder) {
				r.Path = append(r.Path, folder)
			}
		}
		return nil
	}
	return &searchPath{&settings{j, stepPath, v1alpha1.Setup{Path: folders}, note}}
}

// machinePath returns the folders of the machine's PATH, without a trailing \.
func machinePath(ctx context.Context, n *node.Node) ([]string, error) {
	reply, err := n.Settings.GetEnvironment(ctx, &agentv1.GetEnvironmentRequest{})
	if err != nil {
		return nil, fmt.Errorf("read the machine's environment: %w", err)
	}
	for _, v := range reply.GetVariables() {
		if strings.EqualFold(v.GetName(), "path") {
			folders := strings.Split(v.GetValue(), ";")
			for i := range folders {
				folders[i] = strings.TrimRight(strings.Trim(folders[i], `" `), `\`)
			}
			return folders, nil
		}
	}
	return nil, nil
}

func (s *searchPath) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil || len(r.Path) == 0 {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "take " + strings.Join(r.Path, ", ") + " off"}, nil
}

func (s *searchPath) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if _, err := s.node.Settings.SetEnvironment(ctx, &agentv1.SetEnvironmentRequest{RemovePath: r.Path}); err != nil {
		return plan.Outcome{}, fmt.Errorf("take folders off the machine's PATH: %w", err)
	}
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.Path = nil })
}

// hostsFile makes the API server's name resolve.
type hostsFile struct{ *settings }

func hostsStep(j *joining) plan.Step {
	var spec v1alpha1.Setup
	alias := j.spec.Join.ControlPlaneAlias
	if alias != nil {
		spec.Hosts = []v1alpha1.HostsEntry{{Address: alias.IP, Names: []string{alias.Name}}}
	}
	note := func(ctx context.Context, n *node.Node, r *record) error {
		if slices.ContainsFunc(r.Hosts, func(h hostsRecord) bool { return strings.EqualFold(h.Name, alias.Name) }) {
			return nil
		}
		reply, err := n.Settings.GetHosts(ctx, &agentv1.GetHostsRequest{})
		if err != nil {
			return fmt.Errorf("read the hosts file: %w", err)
		}
		before := hostsRecord{Name: alias.Name}
		for _, entry := range reply.GetEntries() {
			if strings.EqualFold(entry.GetName(), alias.Name) && before.Before == "" {
				before.Before = entry.GetAddress()
			}
		}
		r.Hosts = append(r.Hosts, before)
		return nil
	}
	return &hostsFile{&settings{j, stepHosts, spec, note}}
}

// Plan also detects names of earlier runs that the node file no longer has.
func (s *hostsFile) Plan(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	change, err := s.settings.Plan(ctx)
	if stale := s.stale(r); len(stale) > 0 {
		change = plan.Change{Needed: true,
			Summary: strings.Join(append(describeHosts(stale), emptyless(change.Summary)...), ", ")}
	}
	return change, err
}

func (s *hostsFile) Apply(ctx context.Context, reporter ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if err := takeHostsBack(ctx, s.node, s.stale(r)); err != nil {
		return plan.Outcome{}, err
	}
	if len(s.spec.Hosts) == 0 {
		return plan.Outcome{}, nil
	}
	return s.settings.Apply(ctx, reporter)
}

// stale returns the names that swdt added and the node file no longer has.
func (s *hostsFile) stale(r record) []hostsRecord {
	alias := s.joining.spec.Join.ControlPlaneAlias
	return slices.DeleteFunc(slices.Clone(r.Hosts), func(h hostsRecord) bool {
		return alias != nil && strings.EqualFold(h.Name, alias.Name)
	})
}

func (s *hostsFile) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	return plan.Change{Needed: len(r.Hosts) > 0, Summary: strings.Join(describeHosts(r.Hosts), ", ")}, err
}

func (s *hostsFile) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, takeHostsBack(ctx, s.node, r.Hosts)
}

func describeHosts(hosts []hostsRecord) []string {
	var parts []string
	for _, h := range hosts {
		if h.Before == "" {
			parts = append(parts, "remove "+h.Name)
		} else {
			parts = append(parts, h.Name+" → "+h.Before+" again")
		}
	}
	return parts
}

// takeHostsBack gives names in the hosts file their previous addresses back.
func takeHostsBack(ctx context.Context, n *node.Node, hosts []hostsRecord) error {
	if len(hosts) == 0 {
		return nil
	}
	request := &agentv1.SetHostsRequest{}
	for _, h := range hosts {
		request.Entries = append(request.Entries, &agentv1.HostsEntry{Name: h.Name, Address: h.Before})
	}
	if _, err := n.Settings.SetHosts(ctx, request); err != nil {
		return fmt.Errorf("edit the hosts file: %w", err)
	}
	return update(ctx, n, func(r *record) {
		r.Hosts = slices.DeleteFunc(r.Hosts, func(h hostsRecord) bool { return slices.Contains(hosts, h) })
	})
}

func emptyless(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// firewall lets the API server reach kubelet.
type firewall struct{ *settings }

func firewallStep(j *joining) plan.Step {
	const rule = "swdt kubelet"
	note := func(_ context.Context, _ *node.Node, r *record) error {
		if !containsFold(r.Firewall, rule) {
			r.Firewall = append(r.Firewall, rule)
		}
		return nil
	}
	spec := v1alpha1.Setup{Firewall: []v1alpha1.FirewallRule{{Name: rule, Protocol: "tcp",
		Ports: cmp.Or(j.spec.Kubelet.Setting("port", "port"), "10250")}}}
	return &firewall{&settings{j, stepFirewall, spec, note}}
}

func (s *firewall) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil || len(r.Firewall) == 0 {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "remove the rule " + strings.Join(r.Firewall, ", ")}, nil
}

func (s *firewall) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	for _, name := range r.Firewall {
		_, err := s.node.Firewall.Remove(ctx, &agentv1.RemoveFirewallRuleRequest{Name: name})
		if err != nil && !errors.Is(err, fault.ErrNotExist) {
			return plan.Outcome{}, fmt.Errorf("remove the firewall rule %s: %w", name, err)
		}
	}
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.Firewall = nil })
}
