package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/maruel/natural"
	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/doctor"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/redact"
	"github.com/swdt-dev/swdt/internal/redact/document"
	"github.com/swdt-dev/swdt/internal/ui"
)

// never is the severity at which nothing is: `--fail-on never`.
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
	cmd := forNodes(&cobra.Command{
		Use:   "doctor [flags]",
		Short: "What is wrong with a node, and what to do about it",
		Long: `Asks the node, its container runtime and, where a kubeconfig is at hand, its
cluster for facts, and lets rules look at them: services, versions, kubelet's flags
and certificates, containerd's configuration, images, the pod network, ports,
firewall, clock, disk and memory, crashes of the last day. Nothing is changed.

Each finding says what was seen and what to do. A rule whose facts cannot be had is
said not to have looked, and why: that is not the same as nothing found.

Of several nodes each finding is listed once, with the nodes that have it, and its
commands are for exactly those; -o wide lists all of them by name.

--save-facts keeps what the rules looked at, and --facts lets them look again,
anywhere, without the node. There are no keys, tokens or passwords in it.

It ends with 5 where something is as bad as --fail-on says.`,
		Example: examples(
			"doctor --kubeconfig admin.conf", "the node, and what its cluster makes of it",
			"doctor --fail-on warning", "for scripts: exit code 5 for warnings too",
			"doctor --rule disk-space,memory", "only these",
			"doctor --list-rules", "what is looked at",
			"doctor --save-facts facts.json", "to look again later, or elsewhere",
			"doctor --facts facts.json", "",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), o) },
	})
	flags := cmd.Flags()
	o.cluster.addFlags(cmd)
	flags.BoolVar(&o.list, "list-rules", false, "only list the rules; no node is contacted")
	flags.StringSliceVar(&o.rules, "rule", nil, "only these `rules`, several times or with commas for several")
	flags.StringVar(&o.failOn, "fail-on", string(doctor.Error), "end with 5 for a finding this bad: error, warning, info or never")
	flags.StringVar(&o.facts, "facts", "", "look at the facts in this `file` and contact no node")
	flags.StringVar(&o.saveFacts, "save-facts", "", "write the facts to this `file`, to look at again with --facts")
	must(cmd.MarkFlagFilename("facts"))
	must(cmd.RegisterFlagCompletionFunc("rule", completeRules))
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failOns(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func failOns() []string {
	var all []string
	for _, s := range doctor.Severities() {
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
		return usagef("--facts looks at a file, and contacts nobody: leave --save-facts, --kubeconfig and --context out")
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
		facts, err := readFacts(o.facts)
		if err != nil {
			return err
		}
		return a.printDoctor(o, a.examined(facts, o.rules))
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	found, err := a.atHand(ctx, &o.cluster, s.story.Node(""), nobodyAsked)
	if err != nil {
		return err
	}
	s.quiet = true
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (doctor.Facts, error) {
		r.Step("looking at the node")
		return doctor.Gather(ctx, doctor.Sources{Node: n, Cluster: found, Join: doc.Node.Spec.Kubernetes.Join, Pipe: doc.RuntimePipe()})
	})
	if o.saveFacts != "" {
		if err := saveFacts(o.saveFacts, results); err != nil {
			return err
		}
	}
	var nodes []doctorNode
	for _, result := range results {
		if result.Err != nil {
			nodes = append(nodes, newDoctorNode(result.Name(), resultFailed, doctor.Report{}, result.Err))
			continue
		}
		nodes = append(nodes, a.examined([]doctor.Facts{result.Value}, o.rules)...)
	}
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed // it says all there is to say
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
	return a.print(ruleList{doctor.List(rules)}, func(p *ui.Page) error { return doctor.WriteList(p, rules) })
}

// doctorReport is the result of `swdt doctor`.
type doctorReport struct {
	Nodes []doctorNode `json:"nodes"`
}

// doctorNode is what was found of one node.
type doctorNode struct {
	frame                     // its result: ok, findings or failed
	Windows  string           `json:"windows"` // ltsc2022
	Rules    []string         `json:"rules"`   // that have looked
	Skipped  []doctor.Skipped `json:"skipped"`
	Findings []doctor.Finding `json:"findings"` // the worst first

	report doctor.Report // its remedies name no node
}

func newDoctorNode(name, result string, r doctor.Report, err error) doctorNode {
	return doctorNode{
		frame: newFrame(name, result, err), report: r,
		Windows: r.Windows, Rules: orNone(r.Rules), Skipped: orNone(r.Skipped), Findings: orNone(r.Findings),
	}
}

func (a *app) examined(all []doctor.Facts, rules []string) (nodes []doctorNode) {
	for _, facts := range all {
		report, err := doctor.Examine(facts, rules...)
		result := resultOK
		if len(report.Findings) > 0 {
			result = "findings"
		}
		node := newDoctorNode(facts.Node, result, report, err)
		node.Findings = slices.Clone(node.Findings) // those of the report go into groups
		for i, f := range node.Findings {
			node.Findings[i].Remedy = a.remedies(facts.Node, f.Remedy)
		}
		nodes = append(nodes, node)
	}
	slices.SortStableFunc(nodes, func(a, b doctorNode) int { return natural.Compare(a.Name, b.Name) })
	return nodes
}

// printDoctor prints what was found. Its error is the exit code that --fail-on
// wants.
func (a *app) printDoctor(o *doctorOptions, nodes []doctorNode) error {
	err := a.print(doctorReport{orNone(nodes)}, func(p *ui.Page) error {
		var reports []doctor.Report
		for _, n := range nodes {
			if n.Error == "" { // else stderr has it
				reports = append(reports, n.report)
			}
		}
		return doctor.WriteText(p, reports, doctor.TextOptions{Remedies: a.remediesOn, Wide: p.Wide})
	})
	if err != nil {
		return err
	}
	bad := func(n doctorNode) bool { return n.report.Has(doctor.Severity(o.failOn)) }
	if o.failOn != never && slices.ContainsFunc(nodes, bad) {
		return &exitError{code: exitFinding}
	}
	return nil
}

// ruleList is the result of `swdt doctor --list-rules`.
type ruleList struct {
	Rules []doctor.Listed `json:"rules"`
}

// factsFile is what --save-facts writes: one node or many.
type factsFile struct {
	Nodes []doctor.Facts `json:"nodes"`
}

func readFacts(path string) ([]doctor.Facts, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--facts: %v", err)
	}
	var file factsFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, usagef("--facts %s: this is no file of swdt doctor --save-facts: %v", path, err)
	}
	if len(file.Nodes) == 0 {
		return nil, usagef("--facts %s: there is no node in it", path)
	}
	for _, facts := range file.Nodes {
		if facts.Form != doctor.Form {
			return nil, usagef("--facts %s: its facts have form %d, and this swdt knows form %d: use the swdt that wrote it", path, facts.Form, doctor.Form)
		}
	}
	return file.Nodes, nil
}

// saveFacts keeps the facts of the nodes that gave some. What services are started
// with, and what was logged, may hold a secret: it is taken out.
func saveFacts(path string, results []fleet.Result[doctor.Facts]) error {
	var file factsFile
	for _, result := range results {
		if result.Err == nil {
			file.Nodes = append(file.Nodes, result.Value)
		}
	}
	if len(file.Nodes) == 0 {
		return nil // what stands there from before is worth more
	}
	redactor, err := redact.New(nil)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(file, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(document.Redact(redactor, text), '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("save the facts: %w", err)
	}
	return nil
}
