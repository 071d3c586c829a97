package upgradecheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// The rules about feature gates.
const (
	ruleGateUnknown = "gate-unknown"
	ruleGateLocked  = "gate-locked"
	ruleGateGoing   = "gate-going"
	ruleGateNeeds   = "gate-needs"
	ruleGateIgnored = "gate-ignored"
)

// gate holds a feature gate against the table. An unknown gate ends both programs, and so does a value that a locked
// gate does not allow; only the first is in their log.
func (c *checking) gate(s Setting) {
	minor := c.target.minor()
	g := c.table.Gate(s.Name, minor)
	f := Finding{Effect: Exits, Since: since(g.State), Places: []Place{s.Place}, Source: c.gateSource(s.Name), Setting: s}
	switch on := s.Value == "true"; {
	case !g.Known:
		f.Rule = ruleGateUnknown
		f.Finding = finding.New(s.text(), "%s ends: %s", s.Program, c.unknownGate(s.Name, g.State)).As(finding.Error).
			Remedied("%s", c.gateRemedy(s, minor))
	case g.Locked && on != g.On:
		f.Rule = ruleGateLocked
		f.Finding = finding.New(s.text(), "%s ends: the feature gate %s is locked to %t since %s", s.Program, s.Name, g.On,
			minorText(g.Since)).As(finding.Error).Remedied("remove it: no other value is allowed")
	case g.Gone > 0:
		f.Rule, f.Effect, f.Since = ruleGateGoing, Deprecated, minorText(g.Gone)
		f.Finding = finding.New(s.text(), "%s %s will not know the feature gate %s, and end", s.Program, minorText(g.Gone), s.Name).
			As(finding.Info).Remedied("%s", c.gateRemedy(s, g.Gone))
	default:
		return
	}
	if s.Ignored != "" {
		f.Rule, f.Effect = ruleGateIgnored, Ignored
		f.Finding = finding.New(s.text(), "%s does not read the feature gate %s: %s", s.Program, s.Name, s.Ignored).
			As(finding.Info).Remedied("remove it: without --config, %s", whatThen(g.State, minor))
	}
	if s.Form == Image {
		c.imageRemedy(&f)
	}
	c.addFor(s, f)
}

func whatThen(g kubesettings.State, minor int) string {
	if g.Known {
		return "a later version would end with it"
	}
	return "kube-proxy " + minorText(minor) + " would end with it"
}

// unknownGate returns why a version does not know a gate.
func (c *checking) unknownGate(name string, g kubesettings.State) string {
	if g.Since > 0 {
		return fmt.Sprintf("Kubernetes %s removed the feature gate %s", minorText(g.Since), name)
	}
	later := c.table.Gate(name, c.table.Newest())
	if later.Since > c.target.minor() && later.Known {
		return fmt.Sprintf("Kubernetes knows the feature gate %s only since %s", name, minorText(later.Since))
	}
	return fmt.Sprintf("Kubernetes %s to %s knows no feature gate %s", minorText(c.table.Oldest()), minorText(c.table.Newest()), name)
}

// gateRemedy returns what to do with a gate that a minor version does not know.
func (c *checking) gateRemedy(s Setting, minor int) string {
	if g := c.table.Gate(s.Name, minor); !g.Known && g.Since > 0 {
		minor = g.Since // it was removed earlier
	}
	before := c.table.Gate(s.Name, minor-1)
	remedy := "remove it"
	switch {
	case !before.Known:
		remedy = "remove it, or correct its name"
	case before.Locked && before.On:
		remedy = fmt.Sprintf("remove it: it is always on since %s", minorText(before.Since))
	case before.Locked:
		remedy = fmt.Sprintf("remove it: it is always off since %s", minorText(before.Since))
	}
	if s.Name == "WinDSR" {
		remedy += "; --enable-dsr or winkernel.enableDSR, which turns DSR on, stays"
	}
	return remedy
}

// imageRemedy replaces the remedy for a gate that the script in an image sets.
func (c *checking) imageRemedy(f *Finding) {
	f.What += "; the script in the image sets it"
	f.Remedy = "start kube-proxy.exe with a command of your own without feature gates, as `swdt network install` does: " +
		"no setting turns the script's gates off"
}

// dependencies finds gates that are on although a gate that they need is off, with which both programs end since 1.35
// (defaultKubernetesFeatureGateDependencies in pkg/features/kube_features.go).
func (c *checking) dependencies() {
	type gate struct {
		program            kubesettings.Program
		node, object, name string
	}
	off := map[gate]Setting{}
	for _, s := range slices.Backward(c.facts.Settings) { // the first of several stays
		if s.Kind == GateSetting && s.Value == "false" {
			off[gate{s.Program, s.Place.Node, s.Place.Object, s.Name}] = s
		}
	}
	for _, s := range c.facts.Settings {
		if s.Kind != GateSetting || s.Value != "true" || s.Ignored != "" {
			continue
		}
		for _, needed := range c.table.Needs(s.Name, c.target.minor()) {
			other, ok := off[gate{s.Program, s.Place.Node, s.Place.Object, needed}]
			if !ok {
				continue
			}
			c.add(Finding{Rule: ruleGateNeeds, Effect: Exits, Since: "1.35", Source: c.gateSource(s.Name), Places: []Place{s.Place},
				Finding: finding.New(s.text()+", "+other.text(), "%s ends: the feature gate %s needs %s, which is off",
					s.Program, s.Name, needed).As(finding.Error).Remedied("remove %s=false, or %s=true", needed, s.Name)})
		}
	}
}

// since returns the version of a state, or "" if it is older than the table.
func since(s kubesettings.State) string {
	if s.Since == 0 {
		return ""
	}
	return minorText(s.Since)
}

// gateSource returns the source of a gate's states: the pull request if a Windows gate has one, otherwise the file.
func (c *checking) gateSource(name string) string {
	requests := map[string]string{"WinDSR": "142125", "WinOverlay": "142125", "WindowsHostNetwork": "142018",
		"WindowsCPUAndMemoryAffinity": "142500", "DynamicResourceAllocation": "141946", "ExecProbeTimeout": "143335",
		"SystemdWatchdog": "143337", "KubeletTracing": "141714", "SidecarContainers": "137755"}
	if request := requests[name]; request != "" && c.target.minor() >= 37 {
		return "https://github.com/kubernetes/kubernetes/pull/" + request
	}
	return "https://github.com/kubernetes/kubernetes/blob/" + strings.TrimSpace(c.table.Source(c.target.minor())) +
		"/pkg/features/kube_features.go"
}
