package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// environment sets variables of the machine. Summaries contain only the names of the variables,
// since the values may be secret.
type environment struct {
	node   *node.Node
	wanted map[string]string
}

func (s *environment) Name() string { return "environment" }

func (s *environment) Plan(ctx context.Context) (plan.Change, error) {
	differing, err := s.differing(ctx, s.node)
	if err != nil || len(differing) == 0 {
		return plan.Change{}, err
	}
	var names []string
	for _, variable := range differing {
		names = append(names, variable.GetName())
	}
	return plan.Change{Needed: true, Summary: "set " + strings.Join(names, ", ")}, nil
}

func (s *environment) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	differing, err := s.differing(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if _, err := s.node.Settings.SetEnvironment(ctx, &agentv1.SetEnvironmentRequest{Variables: differing}); err != nil {
		return plan.Outcome{}, fmt.Errorf("set the machine's environment: %w", err)
	}
	// A service, also a restarted one, inherits the variables that services.exe got at boot (Microsoft's KB 821761,
	// microsoft/openjdk#627).
	return plan.Outcome{Message: "services have it after the next reboot"}, nil
}

func (s *environment) differing(ctx context.Context, n *node.Node) ([]*agentv1.EnvironmentVariable, error) {
	now, err := machineEnvironment(ctx, n)
	if err != nil {
		return nil, err
	}
	var differing []*agentv1.EnvironmentVariable
	for name, value := range s.wanted {
		if got, ok := now[strings.ToLower(name)]; !ok || got != value {
			differing = append(differing, &agentv1.EnvironmentVariable{Name: name, Value: value})
		}
	}
	slices.SortFunc(differing, func(a, b *agentv1.EnvironmentVariable) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
	return differing, nil
}

// machineEnvironment returns the machine's variables, unexpanded, by lower-case name.
func machineEnvironment(ctx context.Context, n *node.Node) (map[string]string, error) {
	reply, err := n.Settings.GetEnvironment(ctx, &agentv1.GetEnvironmentRequest{})
	if err != nil {
		return nil, fmt.Errorf("read the machine's environment: %w", err)
	}
	variables := map[string]string{}
	for _, variable := range reply.GetVariables() {
		variables[strings.ToLower(variable.GetName())] = variable.GetValue()
	}
	return variables, nil
}

// searchPath appends folders to the machine's PATH.
type searchPath struct {
	node   *node.Node
	wanted []string
}

func (s *searchPath) Name() string { return "PATH" }

func (s *searchPath) Plan(ctx context.Context) (plan.Change, error) {
	missing, err := s.missing(ctx, s.node)
	if err != nil || len(missing) == 0 {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "append " + strings.Join(missing, ", ")}, nil
}

func (s *searchPath) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	missing, err := s.missing(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if _, err := s.node.Settings.SetEnvironment(ctx, &agentv1.SetEnvironmentRequest{AddPath: missing}); err != nil {
		return plan.Outcome{}, fmt.Errorf("append to the machine's PATH: %w", err)
	}
	return plan.Outcome{}, nil
}

func (s *searchPath) missing(ctx context.Context, n *node.Node) ([]string, error) {
	now, err := machineEnvironment(ctx, n)
	if err != nil {
		return nil, err
	}
	var folders []string
	for folder := range strings.SplitSeq(now["path"], ";") {
		folders = append(folders, canonicalFolder(folder))
	}
	var missing []string
	for _, folder := range s.wanted {
		if canonical := canonicalFolder(folder); !slices.Contains(folders, canonical) {
			folders = append(folders, canonical)
			missing = append(missing, folder)
		}
	}
	return missing, nil
}

// canonicalFolder returns the same text for different spellings of one folder, such as C:/k/ and
// c:\K.
func canonicalFolder(folder string) string {
	folder = strings.ToLower(strings.ReplaceAll(strings.Trim(strings.TrimSpace(folder), `"`), "/", `\`))
	return strings.TrimRight(folder, `\`)
}
