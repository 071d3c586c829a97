package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/objectfix"
	"github.com/swdt-dev/swdt/internal/join/settingchange"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// fix removes the settings of a report's findings from the objects of the cluster and from the nodes, after a question about
// each of both. c is nil if no cluster was read, and failed are the nodes that could not be read.
func (a *app) fix(ctx context.Context, o *upgradeCheckOptions, c *cluster.Cluster, report upgradecheck.Report, failed error) error {
	fixed := objectfix.Report{Check: report}
	var removals []upgradecheck.Removal
	removals, fixed.Left = upgradecheck.Removals(report.Findings)
	if a.inText() {
		if err := a.print(report, report.WriteText); err != nil {
			return err
		}
	}
	ofObject := func(r upgradecheck.Removal) bool { return r.Object != "" }
	var stopped error
	if c != nil {
		fixed.Objects, stopped = a.fixObjects(ctx, o, c, slices.DeleteFunc(slices.Clone(removals), func(r upgradecheck.Removal) bool { return !ofObject(r) }))
	}
	var results []fleet.Result[push.NodeResult]
	if stopped == nil {
		results, stopped = a.removeSettings(ctx, o, slices.DeleteFunc(removals, ofObject))
	}
	fixed.Complete(results)
	if err := a.print(fixed, fixed.WriteText); err != nil {
		return err
	}
	if stopped != nil {
		return stopped
	}
	if failed = errors.Join(failed, objectfix.Failure(fixed.Objects)); failed == nil {
		failed = fleet.Failures(results)
	}
	if failed == nil && o.failOn != never && fixed.LeftHas(finding.Severity(o.failOn)) {
		return &exitError{code: exitFinding}
	}
	return failed
}

// fixObjects shows the changes of the objects of a cluster, asks, and makes them. The changes are there also with an error:
// those of the plan if the answer is no.
func (a *app) fixObjects(ctx context.Context, o *upgradeCheckOptions, c *cluster.Cluster, removals []upgradecheck.Removal) (
	[]objectfix.Change, error) {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	take := []string{"upgrade", "check"}
	for _, flag := range []struct{ name, value string }{{"--kubernetes", o.kubernetes}, {"--containerd", o.containerd}, {"--windows", o.windows}} {
		if flag.value != "" {
			take = append(take, flag.name, flag.value)
		}
	}
	take = append(take, "--fix", "--force")
	fix, err := objectfix.Plan(ctx, c, removals, objectfix.Options{Table: o.table, Force: o.force, Take: take})
	if err != nil || fix.Ready() == 0 || a.global.dryRun {
		return fix.Changes(), unreachable(explain(ctx, err))
	}
	if !o.yes {
		page := ui.NewPage(a.streams.Err, false)
		if err := errors.Join(objectfix.WriteText(page, fix.Changes()), page.Flush()); err != nil {
			return fix.Changes(), err
		}
	}
	if err := confirm(ctx, a.prompter(a.newStory()), o.yes, fmt.Sprintf("Change %s of the cluster?", several(fix.Ready(), "object"))); err != nil {
		return fix.Changes(), err
	}
	err = fix.Apply(ctx)
	return fix.Changes(), unreachable(explain(ctx, err))
}

// removeSettings shows the changes of all nodes, asks, and makes them. A node whose changes cannot be planned is left out,
// with its error. The results are there also with an error: those of the plan if the answer is no.
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
	ready, results := map[string]bool{}, []fleet.Result[push.NodeResult]{}
	for _, planned := range plans {
		if planned.Err == nil {
			ready[planned.Name()] = true
		} else {
			results = append(results, planned)
		}
	}
	if len(ready) == 0 || a.global.dryRun {
		return plans, nil
	}
	s = s.only(func(name string) bool { return ready[name] })
	removals = slices.DeleteFunc(slices.Clone(removals), func(r upgradecheck.Removal) bool {
		return !slices.ContainsFunc(s.names(), func(name string) bool { return o.names[name] == r.Node })
	})
	if err := confirm(ctx, s.options.Prompt, o.yes, fmt.Sprintf("Remove %s from %s, and restart their services?",
		several(len(removals), "setting"), strings.Join(s.names(), ", "))); err != nil {
		return plans, err
	}
	results = append(results, a.onPrograms(ctx, s, o, removals, false)...)
	slices.SortStableFunc(results, func(a, b fleet.Result[push.NodeResult]) int { return natural.Compare(a.Name(), b.Name()) })
	return results, nil
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
