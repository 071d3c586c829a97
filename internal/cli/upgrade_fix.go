package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/settingchange"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// fixNodes removes the settings of a report's findings from the nodes, after a question. failed are the nodes that could
// not be read.
func (a *app) fixNodes(ctx context.Context, o *upgradeCheckOptions, report upgradecheck.Report, failed error) error {
	fixed := settingchange.FixReport{Check: report}
	var removals []upgradecheck.Removal
	removals, fixed.Left = upgradecheck.Removals(report.Findings)
	if a.inText() {
		if err := a.print(report, report.WriteText); err != nil {
			return err
		}
	}
	results, err := a.removeSettings(ctx, o, removals)
	if err != nil {
		return err
	}
	fixed.Complete(results)
	if err := a.print(fixed, fixed.WriteText); err != nil {
		return err
	}
	if failed == nil {
		failed = fleet.Failures(results)
	}
	if failed == nil && o.failOn != never && fixed.LeftHas(finding.Severity(o.failOn)) {
		return &exitError{code: exitFinding}
	}
	return failed
}

// removeSettings shows the changes of all nodes, asks, and makes them.
func (a *app) removeSettings(ctx context.Context, o *upgradeCheckOptions, removals []upgradecheck.Removal) (
	[]fleet.Result[push.NodeResult], error) {
	if len(removals) == 0 {
		return nil, nil
	}
	s, err := a.begin()
	if err != nil {
		return nil, err
	}
	s = s.only(func(name string) bool {
		for _, r := range removals {
			if r.Node == o.names[name] {
				return true
			}
		}
		return false
	})
	plans := a.onPrograms(ctx, s, o, removals, true)
	if err := fleet.Failures(plans); err != nil || a.global.dryRun {
		return plans, err
	}
	if err := confirm(ctx, s.options.Prompt, o.yes, fmt.Sprintf("Remove %s from %s, and restart their services?",
		several(len(removals), "setting"), strings.Join(s.names(), ", "))); err != nil {
		return nil, err
	}
	return a.onPrograms(ctx, s, o, removals, false), nil
}

func several(n int, noun string) string { return finding.Several(n, noun) }

// onPrograms removes settings of kubelet, and then those of kube-proxy, of each node. The results of both are one.
func (a *app) onPrograms(ctx context.Context, s *session, o *upgradeCheckOptions, removals []upgradecheck.Removal,
	dryRun bool) []fleet.Result[push.NodeResult] {
	return onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (
		result push.NodeResult, err error) {
		for _, p := range []kubesettings.Program{kubesettings.Kubelet, kubesettings.KubeProxy} {
			var wishes []settingchange.Wish
			for _, removal := range removals {
				if removal.Node == o.names[doc.Node.Metadata.Name] && removal.Program == p {
					wishes = append(wishes, settingchange.Wish{Kind: removal.Kind, Name: removal.Name, Unset: true})
				}
			}
			if len(wishes) == 0 {
				continue
			}
			options := push.Options{DryRun: dryRun, Holder: plan.Holder("upgrade check --fix")}
			one, err := a.changeNode(ctx, n, doc, settingsOf{program: p}, options, r,
				func(_ context.Context, _ *node.Node, is *settingchange.Settings) (*settingchange.Plan, error) {
					return is.Plan(wishes)
				})
			result = result.And(one)
			if err != nil {
				return result, err
			}
		}
		return result, nil
	})
}
