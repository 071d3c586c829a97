package node

import (
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// IsAgent reports whether a process of a node is an agent of swdt, by its name or by its executable.
func IsAgent(p *agentv1.Process) bool {
	return strings.EqualFold(p.GetName(), layout.AgentName) ||
		strings.HasPrefix(strings.ToLower(p.GetImage()), strings.ToLower(layout.Agents+`\`))
}
