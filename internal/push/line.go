package push

import (
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Line returns the component's result in one line, for users that push repeatedly:
//
//	kubelet  a1b2c3 → d4e5f6  83.6 MB (sent 0.2 MB)  build 4.1s  push 0.4s  down 0.6s  healthy 1.8s
//
// built is the duration of the component's build; 0 if nothing was built.
func (c *ComponentResult) Line(built time.Duration) string {
	cells := []string{c.Name, c.hashes()}
	switch c.Action {
	case ActionReplaced, ActionCreated, ActionRestarted:
		cells = append(cells, c.how())
		if built > 0 {
			cells = append(cells, "build "+ui.Seconds(built))
		}
		cells = append(cells, c.times())
	default:
		cells = append(cells, actionText(c.Action))
	}
	cells = append(cells, c.Message)
	var line strings.Builder
	for _, cell := range cells {
		if cell != "" && line.Len() > 0 {
			line.WriteString("  ")
		}
		line.WriteString(cell)
	}
	return line.String()
}

// how returns a text about the bytes that were sent. If a binary replaced another without
// being sent, the node had kept that binary, and how returns "rolled back".
func (c *ComponentResult) how() string {
	if !c.moved() && c.Action == ActionReplaced {
		return actionText(ActionRolledBack)
	}
	return c.sent()
}
