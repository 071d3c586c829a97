package push

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// swap returns the component's part of the transaction.
func (c *staged) swap() *agentv1.SwapComponent {
	s := &agentv1.SwapComponent{
		Name: c.spec.Name, Destination: c.spec.Destination,
		Staged: c.path, Sha256: c.sha256, PreviousSha256: c.state.GetSha256(),
		CommandLine: c.commandLine, PreviousVersion: c.state.GetVersion(),
		AskVersion: c.path != "" && c.reportsVersion(),
	}
	if c.state.GetService() == nil {
		return s
	}
	s.Service = c.spec.RunBy()
	s.DependsOn = c.dependsOn()
	s.Health = &agentv1.Health{}
	h := c.spec.Health
	if h == nil {
		standard := v1alpha1.DefaultHealth(c.spec.RunBy())
		h = &standard
	}
	if !h.None {
		s.Health.HttpGet, s.Health.CriPipe = h.HTTPGet, h.CRIPipe
	}
	s.Health.Timeout = duration(h.Timeout)
	s.Settle, s.StopTimeout = duration(h.Settle), duration(h.StopTimeout)
	return s
}

func (c *component) dependsOn() []string {
	names := slices.Clone(c.spec.DependsOn)
	for _, name := range v1alpha1.DefaultDependsOn(c.spec.RunBy()) {
		if !slices.ContainsFunc(names, func(given string) bool { return strings.EqualFold(given, name) }) {
			names = append(names, name)
		}
	}
	return names
}

// duration converts d. If d is nil, it returns nil, which means the agent's default.
func duration(d *v1alpha1.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(d.Duration)
}
