package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/comparison"
	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/inspect/programmed"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

type doctorCompareOptions struct {
	cluster   clusterOptions
	all       bool
	failOn    string
	saveFacts string

	files []string
}

func (a *app) doctorCompareCommand() *cobra.Command {
	o := &doctorCompareOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "compare NODE|FILE NODE|FILE… [flags]",
		Short: "Show in what nodes differ, down to a switch in the registry",
		Long: `Compares everything of nodes that an update of Windows, an image or a person can
change: build and revision, updates, the registry's overrides of features and of
HNS and VFP, drivers by hash, services and drivers with their start types,
optional features, programs by hash, and the settings of containerd, the pod
network and kubelet. Differences that more likely explain a symptom come first.
It changes nothing.

A FILE has facts of doctor --save-facts (.json) or is a bundle of diag of the
profile network or full (.tar.gz): its nodes are compared without contacting
them. With three nodes or more, the value that most nodes have comes first, and
the odd one out is named.

A switch in the registry gets a meaning only from a source. If installers of
nodes are known to set it, they are listed with their values, also if they
contradict each other. A fact that is unknown on a node is listed at the end.
Names, addresses and reserved ports that each node has of its own are not
compared. Secrets are replaced by REDACTED first, so nodes that differ in
nothing but a secret are the same.

The exit code is 5 if the nodes differ in something as likely as --fail-on.`,
		Example: examples(
			"doctor compare win-1 win-2", "in what do they differ?",
			"doctor compare --all", "all nodes of the node file, and the odd one out",
			"doctor compare win-1 good.json", "with facts of doctor --save-facts",
			"doctor compare a.tar.gz b.tar.gz -o json", "two bundles of diag",
			"doctor compare --all --fail-on likely", "for scripts",
		),
		Args: arguments(noFlags),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				if isFactsFile(arg) {
					o.files = append(o.files, arg)
				} else {
					a.addNode(arg)
				}
			}
			return a.runDoctorCompare(cmd.Context(), o)
		},
	})
	cmd.ValidArgsFunction = a.completeNodes
	flags := cmd.Flags()
	o.cluster.addFlags(cmd)
	flags.BoolVar(&o.all, "all", false, "compare every node of the node file or the cluster")
	flags.StringVar(&o.failOn, "fail-on", string(comparison.Unlikely),
		"end with 5 for a difference that is this likely to explain a symptom: likely, possible, unlikely or never")
	flags.StringVar(&o.saveFacts, "save-facts", "", "write the facts of the nodes to this `file`, to compare again")
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failOnLikelihoods(),
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func failOnLikelihoods() []string {
	var all []string
	for _, l := range comparison.Likelihoods() {
		all = append(all, string(l))
	}
	return append(all, never)
}

// isFactsFile reports whether an argument names a file with facts: no node has such a name.
func isFactsFile(arg string) bool {
	return strings.HasSuffix(arg, ".json") || isBundle(arg) || strings.ContainsAny(arg, `/\`)
}

// isBundle reports whether a file has the name of a bundle of `swdt diag`.
func isBundle(file string) bool {
	return strings.HasSuffix(file, ".tar.gz") || strings.HasSuffix(file, ".tgz")
}

// asks reports whether nodes are asked, besides those of files.
func (o *doctorCompareOptions) asks(a *app) bool {
	return o.all || len(a.global.nodes) > 0 || a.global.selector != ""
}

func (o *doctorCompareOptions) validate(a *app) error {
	switch {
	case !slices.Contains(failOnLikelihoods(), o.failOn):
		return usagef("--fail-on %s: use %s", o.failOn, strings.Join(failOnLikelihoods(), ", "))
	case o.all && len(a.global.nodes) > 0:
		return usagef("--all compares every node: leave the names of nodes out")
	case !o.asks(a) && len(o.files) == 0:
		return usagef("name two nodes or more, or use --all")
	case !o.asks(a) && (o.saveFacts != "" || o.cluster.named()):
		return usagef("files are compared without a node and without a cluster: leave --save-facts, --kubeconfig and --context out")
	case o.saveFacts != "":
		return checkOutFile("--save-facts", o.saveFacts)
	}
	return nil
}

func (a *app) runDoctorCompare(ctx context.Context, o *doctorCompareOptions) error {
	if err := o.validate(a); err != nil {
		return err
	}
	var saved []comparison.Source
	for _, file := range o.files {
		of, err := factsOf(file)
		if err != nil {
			return usagef("%v", err)
		}
		saved = append(saved, of...)
	}
	sources, failed := []comparison.Source{}, error(nil)
	if o.asks(a) {
		results, err := a.gatherFacts(ctx, &o.cluster, true)
		if err != nil {
			return err
		}
		if o.saveFacts != "" {
			if err := saveFacts(o.saveFacts, results); err != nil {
				return err
			}
		}
		failed = fleet.Failures(results)
		for _, result := range results {
			if result.Err == nil {
				sources = append(sources, comparison.Source{Facts: result.Value})
			}
		}
	}
	sources = append(sources, saved...)
	if len(sources) < 2 {
		if failed != nil {
			return failed
		}
		return usagef("there is only one node to compare: name two nodes or more")
	}
	report, err := comparison.Of(apart(sources))
	if err != nil {
		return err
	}
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	if failed == nil && o.failOn != never && report.Has(comparison.Likelihood(o.failOn)) {
		return &exitError{code: exitFinding}
	}
	return failed
}

// apart gives nodes of the same name different names, from their files.
func apart(sources []comparison.Source) []comparison.Source {
	number, used := map[string]int{}, map[string]bool{}
	for _, s := range sources {
		number[s.Facts.Node]++
	}
	for i, s := range sources {
		name := s.Facts.Node
		if number[name] > 1 && s.From != "" {
			name += " (" + filepath.Base(s.From) + ")"
		}
		unique := name
		for n := 2; used[unique]; n++ {
			unique = fmt.Sprintf("%s %d", name, n)
		}
		used[unique], sources[i].Facts.Node = true, unique
	}
	return sources
}

// factsOf returns the facts of the nodes in a file.
func factsOf(file string) (all []comparison.Source, err error) {
	if !isBundle(file) {
		facts, err := doctor.ReadFacts(file)
		for _, f := range facts {
			all = append(all, comparison.Source{Facts: f, From: file})
		}
		return all, err
	}
	bundle, err := diag.Open(file)
	if err != nil {
		return nil, err
	}
	for _, n := range bundle.Manifest.Nodes {
		if !slices.Contains(n.Tables(), diag.FactsTable) {
			continue
		}
		document, err := bundle.Document(n, diag.FactsTable)
		if err != nil {
			return nil, err
		}
		var facts doctor.Facts
		if err := json.Unmarshal(document, &facts); err != nil {
			return nil, fmt.Errorf("%s: read the facts of %s: %w", file, n.Name, err)
		}
		if err := facts.CheckForm(file); err != nil {
			return nil, err
		}
		facts.Node = n.Name
		all = append(all, comparison.Source{Facts: facts, From: file})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has facts of no node: collect it with `swdt diag --profile network`", file)
	}
	return all, nil
}

// gatherFacts gathers the facts of the chosen nodes. With everything, it also gathers those that only comparisons read.
func (a *app) gatherFacts(ctx context.Context, o *clusterOptions, everything bool) ([]fleet.Result[doctor.Facts], error) {
	s, err := a.begin()
	if err != nil {
		return nil, err
	}
	found, err := a.optionalCluster(ctx, o, s.story.Node(""), readinessUnchecked)
	if err != nil {
		return nil, err
	}
	s.quiet = true
	var services *programmed.Source
	if found != nil {
		services = programmed.NewSource(found.Clientset())
	}
	return onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (doctor.Facts, error) {
		r.Step("looking at the node")
		return doctor.Gather(ctx, doctor.Sources{Node: n, Cluster: found, Services: services, Join: doc.Node.Spec.Kubernetes.Join,
			Provisioners: doc.Node.Spec.Kubernetes.Provisioners, Pipe: doc.RuntimePipe(), Everything: everything})
	}), nil
}
