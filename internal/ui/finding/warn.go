package finding

import "github.com/swdt-dev/swdt/internal/ui"

// Warn reports the warnings among problems while a command goes on, with the evidence and the remedy.
func Warn(r ui.Reporter, problems []Problem) {
	for _, p := range problems {
		if p.Severity != Warning {
			continue
		}
		text := p.Check + ": " + p.What
		if p.Evidence != "" {
			text += " (" + p.Evidence + ")"
		}
		if p.Remedy != "" {
			text += "\n  → " + p.Remedy
		}
		r.Warn("%s", text)
	}
}
