// Package setup brings a node to the state that spec.setup of its node file
// describes, as a list of small idempotent steps. It does not touch anything that the
// file does not mention.
//
// Each step compares first and changes only what differs, so a second run finds
// nothing to do. The steps that need the internet come last, after the reboot
// that features may need.
//
// Values of the registry and exclusions of Microsoft Defender are recorded on the machine before they change
// (record.go), and Undo restores them.
package setup

import (
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
)

// Options are the inputs of the steps besides the node file.
type Options struct {
	// Resolve turns a path of the node file into a path on your machine; nil: the path is
	// used unchanged.
	Resolve func(path string) string
	// InstallerURL is the address of Chocolatey's installer script; empty: the address at
	// which Chocolatey publishes the script.
	InstallerURL string
}

// Steps returns the steps for spec on a node, in the order in which they run.
func Steps(n *node.Node, spec v1alpha1.Setup, opts Options) []plan.Step {
	if opts.Resolve == nil {
		opts.Resolve = func(path string) string { return path }
	}
	if opts.InstallerURL == "" {
		opts.InstallerURL = publishedInstaller
	}
	var steps []plan.Step
	if spec.EnableRDP != nil {
		steps = append(steps, remoteDesktop{node: n, enable: *spec.EnableRDP})
	}
	if spec.OpenSSH != nil && len(spec.OpenSSH.AuthorizedKeys) > 0 {
		steps = append(steps, &sshKeys{node: n, wanted: spec.OpenSSH.AuthorizedKeys, resolve: opts.Resolve})
	}
	if len(spec.Hosts) > 0 {
		steps = append(steps, &hostsFile{n, spec.Hosts})
	}
	if len(spec.Environment) > 0 {
		steps = append(steps, &environment{n, spec.Environment})
	}
	if len(spec.Path) > 0 {
		steps = append(steps, &searchPath{n, spec.Path})
	}
	for _, rule := range spec.Firewall {
		steps = append(steps, firewallRule{n, asRule(rule)})
	}
	if len(spec.Registry) > 0 {
		steps = append(steps, registryOf(n, spec.Registry))
	}
	if spec.AutomaticUpdates != nil {
		steps = append(steps, windowsUpdate(n, *spec.AutomaticUpdates))
	}
	if d := spec.Defender; len(d.ExcludePaths)+len(d.ExcludeProcesses) > 0 {
		steps = append(steps, &defender{n, d})
	}
	if len(spec.Features) > 0 {
		steps = append(steps, &features{n, spec.Features})
	}
	return append(steps, chocolateySteps(n, spec.ChocoPackages, opts.InstallerURL)...)
}
