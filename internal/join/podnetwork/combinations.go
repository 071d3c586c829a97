package podnetwork

import (
	"strings"

	"github.com/swdt-dev/swdt/internal/join/combination"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// combinations returns a warning for each Windows node of the cluster whose Windows is known not to work with the network.
func (w *work) combinations() (all []finding.Problem) {
	network := combination.NetworkTo(string(w.options.Settings.Network), w.facts.Networks)
	for _, n := range w.facts.Windows {
		const version = "10.0." // which precedes the build in a Node's kernel version
		subject := combination.On(strings.TrimPrefix(n.Build, version), n.Product).In(network)
		for _, p := range combination.Problems(subject) {
			p.Evidence = "node " + n.Name + ": " + p.Evidence
			all = append(all, p)
		}
	}
	return all
}
