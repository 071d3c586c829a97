package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/proof/trial"
	"github.com/swdt-dev/swdt/internal/proof/verdict"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// mostUntilFail and mostUntilPass bound the runs of --until-fail and --until-pass, unless --repeat
	// does.
	mostUntilFail, mostUntilPass = 50, 10
	// mostRuns bounds --repeat.
	mostRuns = 1000
)

// e2eOptions are the flags of e2e and of e2e list.
type e2eOptions struct {
	cluster clusterOptions
	source  trial.Source
	set     string
	by      suite.Selection

	out        string
	repeat     int
	repeated   bool // --repeat was given
	untilFail  bool
	untilPass  bool
	taints     []string
	repoList   string
	skipChecks bool
	noEvidence bool
	redact     []string
}

func (a *app) e2eCommand() *cobra.Command {
	o := &e2eOptions{}
	cmd := canDryRun(&cobra.Command{
		Use:        "e2e [flags] [-- FLAG…]",
		Short:      "Run Kubernetes' end-to-end tests against Windows nodes",
		SuggestFor: []string{"test", "ginkgo", "conformance", "e2e.test"},
		Long: `Runs Kubernetes' own e2e.test against the cluster of the kubeconfig: first it lists
the specs that match, and checks whether the cluster can run them. Then it runs
them, shows the progress, and writes results.json, junit.xml and report.html into
the folder --out. FLAGs after -- go to e2e.test as they are.

e2e.test is that of the cluster's version. It is downloaded from dl.k8s.io once,
and verified by its published checksum. --binary names another one, --checkout a
checkout of Kubernetes from which "make" builds one.

The sets of --suite are ` + trial.SetNames() + `.
A --focus replaces the focus of the set; --skip and --label-filter narrow it.

With --repeat, a spec that passed in some runs and failed in others is flaky.
--until-fail ends after the first run with a failure, and --until-pass after the
first run without one; --repeat bounds both.

A spec that skips itself never counts as passed. The exit code is 0 if specs passed
and none failed, 5 if a spec failed, is flaky, or all skipped themselves, 1 if the
tests themselves could not be run to their end, and 2 if no spec matches.

For a spec that failed, the results have evidence, unless --no-evidence is set: the
pods, events and container output of its namespaces, which swdt records while they
exist, and the logs of the nodes involved in that time. These are read over SSH if
node files (-c) name the nodes, else through the API server. With node files there are
also diagnostics, as of "swdt diag". All of it is redacted as there.

At Ctrl-C, e2e.test may clean up for 40 seconds; then swdt removes the namespaces
that this run has made. The next run does that for one that was killed. Namespaces
of others stay.`,
		Example: examples(
			"e2e --suite sig-windows", "all specs of SIG Windows",
			`e2e --focus "Density" --repeat 5`, "is it flaky?",
			"e2e --suite conformance --dry-run", "what would run, and what the checks find",
			"e2e --binary ./e2e.test --focus ResourceQuota", "an e2e.test of your own",
			"e2e list --suite network", "the specs of a set",
			"e2e compare before after", "two folders of results",
		),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return unknownCommand(cmd, args)
			}
			return nil
		},
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			o.repeated = cmd.Flags().Changed("repeat")
			_, err := o.complete(a, time.Now())
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runE2E(cmd.Context(), o, args) },
	})
	o.addSelectionFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.out, "out", "", "`folder` for the results, new or empty (default e2e-DATE-TIME)")
	flags.IntVar(&o.repeat, "repeat", 0, "make `N` runs (default 1; at most 50 with --until-fail, 10 with --until-pass)")
	flags.BoolVar(&o.untilFail, "until-fail", false, "repeat until a spec fails")
	flags.BoolVar(&o.untilPass, "until-pass", false, "repeat until no spec fails")
	flags.StringSliceVar(&o.taints, "non-blocking-taints", nil,
		"`keys` of taints of nodes that specs do not need (default "+trial.DefaultTaints+")")
	flags.StringVar(&o.repoList, "repo-list", "",
		"`file` with the registries of test images (default $KUBE_TEST_REPO_LIST)")
	flags.BoolVar(&o.skipChecks, "skip-checks", false, "run the specs whatever the checks find")
	flags.BoolVar(&o.noEvidence, "no-evidence", false, "collect no evidence of failed specs")
	flags.StringArrayVar(&o.redact, "redact", nil,
		"also redact text of the evidence that matches this `pattern`; repeat the flag for more")
	must(errors.Join(cmd.MarkFlagDirname("out"), cmd.MarkFlagFilename("repo-list")))
	addInOrder(cmd, a.e2eListCommand(), a.e2eCompareCommand())
	return cmd
}

func (o *e2eOptions) addSelectionFlags(cmd *cobra.Command) {
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.source.Path, "binary", "", "`path` of an e2e.test (default that of the cluster's version)")
	flags.StringVar(&o.source.Build, "checkout", "", "build e2e.test in this checkout of Kubernetes, a `folder`")
	flags.StringVar(&o.source.Mirror, "mirror", "", "`URL or folder` that everything is downloaded from instead of https://dl.k8s.io")
	flags.StringVar(&o.set, "suite", "", "a `set` of specs")
	flags.StringArrayVar(&o.by.Focus, "focus", nil, "specs whose name matches this regular `expression`")
	flags.StringArrayVar(&o.by.Skip, "skip", nil, "no specs whose name matches this regular `expression`")
	flags.StringVar(&o.by.LabelFilter, "label-filter", "", "a `filter` of Ginkgo, such as \"sig-windows && !Serial\"")
	must(errors.Join(cmd.MarkFlagFilename("binary"), cmd.MarkFlagDirname("checkout"), cmd.MarkFlagDirname("mirror")))
	var names []string
	for _, set := range trial.Sets() {
		names = append(names, set.Name+"\t"+set.What)
	}
	must(cmd.RegisterFlagCompletionFunc("suite", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)))
}

// complete checks the flags without contacting anything.
func (o *e2eOptions) complete(a *app, now time.Time) (trial.Options, error) {
	options := trial.Options{Source: o.source, Set: o.set, Selection: o.by, Taints: o.taints, SkipChecks: o.skipChecks,
		Folder: o.out, RepoList: o.repoList, Runs: o.repeat}
	if err := a.global.validate(); err != nil {
		return options, err
	}
	if o.set != "" {
		set, ok := trial.FindSet(o.set)
		if !ok {
			return options, usagef("--suite %s: the sets are %s", o.set, trial.SetNames())
		}
		options.Selection = set.Narrowed(o.by)
	}
	switch {
	case options.Selection.Empty():
		return options, usagef("no specs are selected: name them with --suite, --focus or --label-filter")
	case o.source.Path != "" && o.source.Build != "":
		return options, usagef("--binary and --checkout both name an e2e.test: use one of the two")
	case o.untilFail && o.untilPass:
		return options, usagef("--until-fail and --until-pass exclude each other: use one of the two")
	case o.noEvidence && len(o.redact) > 0:
		return options, usagef("--redact has no effect with --no-evidence: leave one of them out")
	case o.repeated && (o.repeat < 1 || o.repeat > mostRuns):
		return options, usagef("--repeat %d: use a number from 1 to %d", o.repeat, mostRuns)
	}
	if err := options.Selection.Check(); err != nil {
		return options, usagef("%v", err)
	}
	if _, err := redact.New(o.redact); err != nil {
		return options, usagef("--redact: %v", err)
	}
	if err := artifact.CheckMirror(o.source.Mirror); err != nil {
		return options, usagef("--mirror %s: %v", o.source.Mirror, err)
	}
	return options, o.completeRun(&options, now)
}

// completeRun fills in those options of a run that depend on other options.
func (o *e2eOptions) completeRun(options *trial.Options, now time.Time) (err error) {
	if options.Folder == "" {
		options.Folder = freeName("e2e-" + now.Format("20060102-150405"))
	}
	if o.repoList != "" { // e2e.test runs in another folder, so make the path absolute
		if options.RepoList, err = filepath.Abs(o.repoList); err != nil {
			return err
		}
		if !exists(options.RepoList) {
			return usagef("--repo-list %s: there is no such file", o.repoList)
		}
	}
	switch {
	case o.untilFail:
		options.Until = trial.FirstFail
		if o.repeat == 0 {
			options.Runs = mostUntilFail
		}
	case o.untilPass:
		options.Until = trial.FirstPass
		if o.repeat == 0 {
			options.Runs = mostUntilPass
		}
	}
	return nil
}

// freeName returns name or, if a file has this name, the name with a number.
func freeName(name string) string {
	free := name
	for n := 2; exists(free) && n < mostRuns; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}

func (a *app) runE2E(ctx context.Context, o *e2eOptions, more []string) error {
	options, err := o.complete(a, time.Now())
	if err != nil {
		return err
	}
	options.Flags = more
	c, err := o.cluster.open()
	if err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story, err := a.e2eEvidence(o, &options)
	if err != nil {
		return err
	}
	options.Reporter = story.Node("")
	if a.global.dryRun {
		plan, err := trial.Prepare(ctx, c, options)
		story.End()
		if err != nil {
			return e2eFailure(explain(ctx, err))
		}
		return a.print(plan, plan.WriteText)
	}
	kubeconfig, done, err := o.cluster.file(a)
	if err != nil {
		return err
	}
	defer done()
	options.Kubeconfig, options.Context = kubeconfig, o.cluster.context
	report, err := trial.Run(ctx, c, options)
	story.End()
	return a.printTrial(ctx, report, err)
}

// printTrial prints the report of a run, and chooses the exit code.
func (a *app) printTrial(ctx context.Context, report verdict.Report, err error) error {
	if report.Folder == "" { // nothing was run
		return e2eFailure(explain(ctx, err))
	}
	printed := a.print(report, func(p *ui.Page) error {
		return errors.Join(trial.WriteFindings(p, report.Findings), report.WriteText(p))
	})
	if err == nil && report.Result != verdict.AllPassed {
		err = &exitError{code: exitFinding} // the table already shows the failures
	}
	return errors.Join(printed, e2eFailure(explain(ctx, err)))
}

// e2eFailure adds the exit code to an error of package trial.
func e2eFailure(err error) error {
	var none *trial.NoSpecsError
	if errors.As(err, &none) {
		return &exitError{code: exitUsage, err: err}
	}
	return unreachable(err)
}
