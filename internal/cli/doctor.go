package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// never is the --fail-on value for a severity that no finding has.
const never = "never"

type doctorOptions struct {
	cluster   clusterOptions
	list      bool
	rules     []string
	failOn    string
	facts     string
	saveFacts string
}

func (a *app) doctorCommand() *cobra.Command {
	o := &doctorOptions{}
	cmd := a.takesNodes(forNodes(&cobra.Command{
		Use:   "doctor [NODE…] [flags]",
		Short: "Find what is wrong with nodes, and print the remedies",
		Long: `Asks the node, its container runtime and, with a kubeconfig, its cluster for
facts, and checks them by rules: services, versions, flags and certificates of
the kubelet, configuration of containerd, images, the pod network, ports,
firewall, clock, disk and memory, crashes of the last day. It changes nothing.

Each finding has what was seen and the remedy. A rule whose facts are missing is
listed as skipped, with the reason: that does not mean that nothing is wrong.

With several nodes, each finding is listed once with the nodes that have it, and
the commands in it are for exactly these nodes; -o wide lists all of them by
name.

--save-facts saves the facts, and --facts checks saved facts again, without the
node. They hold no keys, tokens or passwords.

The exit code is 5 if a finding is as severe as --fail-on or worse.`,
		Example: examples(
			"doctor --kubeconfig admin.conf", "the node, and its state in the cluster",
			"doctor --fail-on warning", "for scripts: exit code 5 for warnings too",
			"doctor --rule disk-space,memory", "only these rules",
			"doctor --list-rules", "list the rules",
			"doctor --save-facts facts.json", "to check again later, or elsewhere",
			"doctor --facts facts.json", "",
			"doctor compare win-1 win-2", "in what do two nodes differ?",
		),
		Args: arguments(noFlags),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), o) },
	}))
	flags := cmd.Flags()
	o.cluster.addFlags(cmd)
	flags.BoolVar(&o.list, "list-rules", false, "only list the rules; no node is contacted")
	flags.StringSliceVar(&o.rules, "rule", nil, "only these `rules`, several times or with commas for several")
	flags.StringVar(&o.failOn, "fail-on", string(finding.Error),
		"end with 5 for a finding this severe: error, warning, info or never")
	flags.StringVar(&o.facts, "facts", "", "check the facts in this `file` and contact no node")
	flags.StringVar(&o.saveFacts, "save-facts", "", "write the facts to this `file`, to check again with --facts")
	must(cmd.MarkFlagFilename("facts"))
	must(cmd.RegisterFlagCompletionFunc("rule", completeRules))
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failOns(),
		cobra.ShellCompDirectiveNoFileComp)))
	addInOrder(cmd, a.doctorCompareCommand())
	return cmd
}

func failOns() []string {
	var all []string
	for _, s := range finding.Severities() {
		all = append(all, string(s))
	}
	return append(all, never)
}

func completeRules(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	for _, rule := range doctor.Rules() {
		ids = append(ids, rule.ID+"\t"+rule.Title)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (o *doctorOptions) validate() error {
	var unknown *doctor.UnknownRuleError
	if _, err := doctor.Select(o.rules); errors.As(err, &unknown) {
		return usagef("--rule: %v", err)
	}
	if !slices.Contains(failOns(), o.failOn) {
		return usagef("--fail-on %s: use %s", o.failOn, strings.Join(failOns(), ", "))
	}
	if o.facts != "" && (o.saveFacts != "" || o.cluster.named()) {
		return usagef("--facts reads a file and contacts no node and no cluster: leave --save-facts, --kubeconfig " +
			"and --context out")
	}
	if o.saveFacts != "" {
		if err := checkOutFile("--save-facts", o.saveFacts); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) runDoctor(ctx context.Context, o *doctorOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	switch {
	case o.list:
		return a.listRules(o)
	case o.facts != "":
		facts, err := doctor.ReadFacts(o.facts)
		if err != nil {
			return usagef("--facts: %v", err)
		}
		return a.printDoctor(o, a.examined(facts, o.rules))
	}
	results, err := a.gatherFacts(ctx, &o.cluster, o.saveFacts != "")
	if err != nil {
		return err
	}
	if o.saveFacts != "" {
		if err := saveFacts(o.saveFacts, results); err != nil {
			return err
		}
	}
	var nodes []doctor.NodeReport
	for _, result := range results {
		if result.Err != nil {
			nodes = append(nodes, doctor.Unexamined(result.Name(), result.Err))
			continue
		}
		nodes = append(nodes, a.examined([]doctor.Facts{result.Value}, o.rules)...)
	}
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed // the error already contains everything that the report would contain
	}
	if err := a.printDoctor(o, nodes); err != nil && failed == nil {
		return err
	}
	return failed
}

func (a *app) listRules(o *doctorOptions) error {
	rules, err := doctor.Select(o.rules)
	if err != nil {
		return err
	}
	return a.print(doctor.RuleList{Rules: doctor.List(rules)},
		func(p *ui.Page) error { return doctor.WriteList(p, rules) })
}

// examined applies the rules to the facts of each node.
func (a *app) examined(all []doctor.Facts, rules []string) []doctor.NodeReport {
	return doctor.ExamineAll(all, a.remedies, rules...)
}

// printDoctor prints the findings. It returns the exit code that --fail-on asks for,
// as an error.
func (a *app) printDoctor(o *doctorOptions, nodes []doctor.NodeReport) error {
	report := doctor.FleetReport{Nodes: nodes}
	write := func(p *ui.Page) error {
		return report.WriteText(p, doctor.TextOptions{Remedies: a.remediesOn, Wide: p.Wide})
	}
	if err := a.print(report, write); err != nil {
		return err
	}
	if o.failOn != never && report.Has(finding.Severity(o.failOn)) {
		return &exitError{code: exitFinding}
	}
	return nil
}

// saveFacts saves the facts of the nodes that returned some. If no node returned facts, saveFacts
// keeps an earlier file instead of writing an empty one.
func saveFacts(path string, results []fleet.Result[doctor.Facts]) error {
	var all []doctor.Facts
	for _, result := range results {
		if result.Err == nil {
			all = append(all, result.Value)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return doctor.SaveFacts(path, all)
}
