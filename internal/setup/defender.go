package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/script"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// defender excludes paths and processes from Microsoft Defender. Only the cmdlets of its module change them: the
// values below DefenderKey are protected, and Add-MpPreference adds to them
// (learn.microsoft.com/powershell/module/defender/add-mppreference).
type defender struct {
	node   *node.Node
	wanted v1alpha1.Defender
}

// DefenderKey has the settings of Microsoft Defender, and DefenderPolicies those of the machine's administrators.
const (
	DefenderKey      = `HKLM\SOFTWARE\Microsoft\Windows Defender`
	DefenderPolicies = `HKLM\SOFTWARE\Policies\Microsoft\Windows Defender`
)

// Exclusions returns the exclusions of Microsoft Defender below DefenderKey or DefenderPolicies.
func Exclusions(ctx context.Context, n *node.Node, key string) (is v1alpha1.Defender, err error) {
	for _, kind := range []struct {
		name string
		list *[]string
	}{{"Paths", &is.ExcludePaths}, {"Processes", &is.ExcludeProcesses}} {
		reply, err := n.Registry.List(ctx, &agentv1.RegistryListRequest{Key: key + `\Exclusions\` + kind.name})
		if err != nil && !errors.Is(err, fault.ErrNotExist) {
			return is, fmt.Errorf("read the exclusions of Microsoft Defender: %w", err)
		}
		for _, value := range reply.GetValues() {
			*kind.list = append(*kind.list, value.GetName())
		}
	}
	return is, nil
}

func (s *defender) Name() string { return "Defender" }

func (s *defender) Plan(ctx context.Context) (plan.Change, error) {
	installed, err := s.installed(ctx)
	if err != nil || !installed {
		return plan.Change{Summary: "Microsoft Defender is not installed"}, err
	}
	missing, err := s.missing(ctx)
	if err != nil || none(missing) {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "exclude " + joined(missing)}, nil
}

func (s *defender) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	missing, err := s.missing(ctx)
	if err != nil {
		return plan.Outcome{}, err
	}
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	r.Paths, r.Processes = union(r.Paths, missing.ExcludePaths), union(r.Processes, missing.ExcludeProcesses)
	if err := r.save(ctx, s.node); err != nil {
		return plan.Outcome{}, err
	}
	if err := s.change(ctx, "Add-MpPreference", missing); err != nil {
		return plan.Outcome{}, err
	}
	// Tamper protection and policies of a domain ignore the change, and the cmdlet reports no error.
	if missing, err = s.missing(ctx); err == nil && !none(missing) {
		err = fmt.Errorf("exclude %s from Microsoft Defender: the exclusion is ignored; set it in the policy that manages "+
			"Defender, or turn tamper protection off", joined(missing))
	}
	return plan.Outcome{}, err
}

// PlanUndo finds the exclusions that setup has added.
func (s *defender) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil || len(r.Paths)+len(r.Processes) == 0 {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "scan " + joined(v1alpha1.Defender{ExcludePaths: r.Paths,
		ExcludeProcesses: r.Processes}) + " again"}, nil
}

func (s *defender) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	ours, err := s.present(ctx, r)
	if err != nil {
		return plan.Outcome{}, err
	}
	if err := s.change(ctx, "Remove-MpPreference", ours); err != nil {
		return plan.Outcome{}, err
	}
	// As in Apply, the cmdlet reports no error if the change is ignored.
	left, err := s.present(ctx, r)
	if err != nil {
		return plan.Outcome{}, err
	}
	if !none(left) {
		return plan.Outcome{}, fmt.Errorf("scan %s with Microsoft Defender again: the change is ignored; remove the exclusion "+
			"in the policy that manages Defender, or turn tamper protection off", joined(left))
	}
	return undone(ctx, s.node, func(r *record) { r.Paths, r.Processes = nil, nil })
}

func (s *defender) installed(ctx context.Context) (bool, error) {
	_, err := s.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "WinDefend"})
	switch {
	case errors.Is(err, fault.ErrNoService):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for Microsoft Defender: %w", err)
	}
	return true, nil
}

// missing returns the wanted exclusions that Microsoft Defender does not have.
func (s *defender) missing(ctx context.Context) (v1alpha1.Defender, error) {
	is, err := Exclusions(ctx, s.node, DefenderKey)
	return v1alpha1.Defender{
		ExcludePaths:     without(s.wanted.ExcludePaths, is.ExcludePaths),
		ExcludeProcesses: without(s.wanted.ExcludeProcesses, is.ExcludeProcesses),
	}, err
}

// present returns the recorded exclusions that Microsoft Defender has.
func (s *defender) present(ctx context.Context, r record) (v1alpha1.Defender, error) {
	is, err := Exclusions(ctx, s.node, DefenderKey)
	return v1alpha1.Defender{ExcludePaths: common(r.Paths, is.ExcludePaths),
		ExcludeProcesses: common(r.Processes, is.ExcludeProcesses)}, err
}

// change runs a cmdlet of Microsoft Defender's module with exclusions.
func (s *defender) change(ctx context.Context, cmdlet string, d v1alpha1.Defender) error {
	if none(d) {
		return nil
	}
	var lines []string
	for _, kind := range []struct {
		parameter string
		list      []string
	}{{"ExclusionPath", d.ExcludePaths}, {"ExclusionProcess", d.ExcludeProcesses}} {
		for _, exclusion := range kind.list {
			lines = append(lines, cmdlet+" -"+kind.parameter+" "+powershell.Quote(exclusion))
		}
	}
	out, err := script.RunForOutput(ctx, script.Clients{Files: s.node.Files, Processes: s.node.Processes},
		strings.Join(lines, "\n"))
	if err != nil {
		return fmt.Errorf("change the exclusions of Microsoft Defender: %w", err)
	}
	if out.ExitCode != 0 {
		return fmt.Errorf("change the exclusions of Microsoft Defender: %s ended with exit code %d: %s", cmdlet,
			out.ExitCode, strings.TrimSpace(out.Stderr))
	}
	return nil
}

func none(d v1alpha1.Defender) bool { return len(d.ExcludePaths)+len(d.ExcludeProcesses) == 0 }

func joined(d v1alpha1.Defender) string {
	return strings.Join(slices.Concat(d.ExcludePaths, d.ExcludeProcesses), ", ")
}

// without returns the names of a that b does not have, union those of either, and common those of both. Case does not
// matter.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return has(b, name) })
}

func union(a, b []string) []string { return append(slices.Clone(a), without(b, a)...) }

func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !has(b, name) })
}

func has(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
