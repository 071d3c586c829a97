package join

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// settingsProblems holds the settings that the upgraded programs will have against what their version takes, by the rules
// of swdt upgrade check: kubelet's arguments, the expected config.yaml, the drop-ins, and the arguments of a kube-proxy
// that is a service. A version that the table lacks gives no problem. The node file may make an error a warning.
func (s *upgrade) settingsProblems(ctx context.Context, n *node.Node) ([]finding.Problem, error) {
	table, err := kubesettings.Load()
	if err != nil {
		return nil, err
	}
	target, err := upgradecheck.ParseTarget(table, s.spec.Version, "", "")
	if unknown := new(upgradecheck.UnknownVersionError); errors.As(err, &unknown) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check the node's settings: %w", err)
	}
	r := upgradecheck.NewReader(table)
	r.Nodes = []upgradecheck.Node{{Name: n.Name, Kubelet: s.from}}
	if err := s.readKubelet(ctx, n, r); err != nil {
		return nil, err
	}
	if err := readProxyService(ctx, n, r); err != nil {
		return nil, err
	}
	var problems []finding.Problem
	for _, f := range upgradecheck.Check(table, target, r.Facts) {
		if f.Severity == finding.Info || f.Rule == upgradecheck.RuleSkew { // versionProblems compares the versions
			continue
		}
		p := finding.Problem{Check: f.Rule, Where: finding.OnNode, Finding: f.Finding}
		place := f.Places[0]
		place.Node = "" // the result is of one node
		p.Evidence = strings.TrimSuffix(place.String()+": "+f.Evidence, ": ")
		problems = append(problems, preflight.UnlessIgnored(p, s.spec.Join.IgnorePreflightErrors))
	}
	return problems, nil
}

// readKubelet reads the settings that the new kubelet will have.
func (s *upgrade) readKubelet(ctx context.Context, n *node.Node, r *upgradecheck.Reader) error {
	is, err := s.look(ctx, n)
	if err != nil {
		return err
	}
	args, _, err := s.arguments(ctx, n)
	if err != nil {
		return err
	}
	line := is.line
	if args != nil {
		line = commandline.Join(append([]string{kubeletName + ".exe"}, args...)...)
	}
	r.CommandLine(kubesettings.Kubelet, line, upgradecheck.Place{Node: n.Name, Field: "service " + kubeletName})
	// Without the cluster's configuration, the plan itself reports why it is missing.
	if wanted, err := s.foretold(ctx); err == nil {
		merged, err := is.merged(wanted)
		if err != nil {
			return err
		}
		r.Config(kubesettings.Kubelet, merged, upgradecheck.ConfigFile, upgradecheck.Place{Node: n.Name, Field: "config.yaml"})
	}
	for _, path := range is.dropIns {
		content, err := smallfile.Read(ctx, n, path)
		if err != nil {
			return err
		}
		r.Config(kubesettings.Kubelet, content, upgradecheck.DropIn, upgradecheck.Place{Node: n.Name, File: path})
	}
	return nil
}

// readProxyService reads the command line of a kube-proxy that is a service, which keeps it in an upgrade.
func readProxyService(ctx context.Context, n *node.Node, r *upgradecheck.Reader) error {
	reply, err := service(ctx, n, kubeProxyName)
	if err != nil || reply == nil {
		return err
	}
	line := reply.GetProgram().GetCommandLine()
	r.CommandLine(kubesettings.KubeProxy, line, upgradecheck.Place{Node: n.Name, Field: "service " + kubeProxyName})
	return nil
}
