package settingchange

import (
	"context"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Apply makes the change on the node, in one transaction that restarts the program's service; with options.DryRun it only
// reports it. The document has a component of the program's name. Errors are those of push.Configure, and *UnsafeError.
func (p *Plan) Apply(ctx context.Context, n *node.Node, doc config.Document, options push.Options, r ui.Reporter) (
	push.NodeResult, error) {
	if err := p.guard(ctx, n); err != nil {
		return push.NodeResult{}, err
	}
	s := push.Settings{Message: p.message()}
	if registered := p.service.GetServiceConfig().GetCommandLine(); p.line != registered {
		s.Registered, s.CommandLine = registered, p.line
	}
	for _, d := range p.drafts {
		if d.Path != "" && d.changed() {
			s.Files = append(s.Files, push.Companion{Destination: d.Path, Before: d.Content, After: d.after})
		}
	}
	for _, c := range p.Changes {
		r.Info("%s", c)
	}
	return push.Configure(ctx, n, doc, string(p.Program), s, options, r)
}

// String returns a text such as "maxPods: 110 → 40 (C:\var\lib\kubelet\config.yaml)".
func (c Change) String() string {
	return c.Name + ": " + orNotSet(c.Before) + " → " + orNotSet(c.After) + " (" + c.Where + ")"
}

func orNotSet(value string) string {
	if value == "" {
		return "not set"
	}
	return value
}

// message returns the changes in one line.
func (p *Plan) message() string {
	if len(p.Changes) == 0 {
		return "the settings are so already"
	}
	var all []string
	for _, c := range p.Changes {
		all = append(all, c.String())
	}
	return strings.Join(all, "; ")
}
