package preflight

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// lookAtNames finds names of the control plane that the node does not resolve.
func lookAtNames(f *facts) (problems []finding.Finding) {
	seen := map[string]bool{}
	for _, t := range f.node.targets {
		name := t.host()
		if t.addresses.err == nil || seen[name] {
			continue
		}
		seen[name] = true
		p := finding.Finding{
			Severity: finding.Error, What: fmt.Sprintf("the node does not know the name %s, %s", name, t.what),
			Remedy: fmt.Sprintf("set spec.kubernetes.join.controlPlaneAlias to {name: %s, ip: …} for the node's "+
				"hosts file, or repair its DNS", name),
		}
		if !errors.Is(t.addresses.err, fault.ErrNotExist) {
			p.Evidence = t.addresses.err.Error()
		}
		problems = append(problems, p)
	}
	return problems
}

// lookAtReach finds addresses of the API server that the node cannot connect to.
func lookAtReach(f *facts) (problems []finding.Finding) {
	for _, t := range f.node.targets {
		switch {
		case t.addresses.err != nil: // reported by lookAtNames
		case t.reach.err != nil:
			problems = append(problems, finding.Finding{
				Severity: finding.Warning, What: "could not see whether the node reaches " + t.address,
				Evidence: t.reach.err.Error(),
			})
		case t.reach.value.Outcome != platform.Reached:
			problems = append(problems, t.problem())
		}
	}
	return problems
}

func (t reached) problem() finding.Finding {
	r := t.reach.value
	p := finding.Finding{Severity: finding.Error, Evidence: strings.TrimSpace(r.Address + " " + r.Detail)}
	at := fmt.Sprintf("%s, %s", t.address, t.what)
	if t.isLoopback() {
		p.What = fmt.Sprintf("nothing answers at %s: on the node, that address is the node itself", at)
		p.Remedy = "let the API server listen on an address that the node reaches (kind: " +
			"networking.apiServerAddress), and set spec.kubernetes.join.controlPlaneEndpoint"
		return p
	}
	switch r.Outcome {
	case platform.Refused:
		p.What = "the node's connection to " + at + " is refused"
		p.Remedy = "is the API server running there, and the port right?"
	case platform.TimedOut:
		p.What = "no answer reaches the node from " + at
		p.Remedy = "let the firewalls between the node and that address, and the control plane's own, pass TCP from the " +
			"node; is the address in a network that the node reaches?"
	case platform.NoRoute:
		p.What = "the node has no route to " + at
		p.Remedy = "put the node on a network with a route to that address, or set " +
			"spec.kubernetes.join.controlPlaneEndpoint to an address that the node reaches"
	default:
		p.What = "the node cannot connect to " + at
		p.Remedy = "look at the node's network settings"
	}
	return p
}

func (t reached) isLoopback() bool {
	name := t.host()
	if t.planned != "" {
		name = t.planned
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback() || strings.EqualFold(name, "localhost")
}
