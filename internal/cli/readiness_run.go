package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/proof/ability"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/readiness"
	"github.com/swdt-dev/swdt/internal/proof/trial"
	"github.com/swdt-dev/swdt/internal/ui"
)

// readinessRunOptions are the flags of readiness run.
type readinessRunOptions struct {
	cluster    clusterOptions
	choice     choiceFlags
	source     trial.Source
	probes     clusterCheckOptions
	taints     []string
	repoList   string
	out        string
	sonobuoy   string
	assume     []string
	disruptive bool
	skipChecks bool
}

func (a *app) readinessRunCommand() *cobra.Command {
	o := &readinessRunOptions{}
	cmd := &cobra.Command{
		Use:        "run [flags]",
		Short:      "Run the readiness cases on a cluster",
		SuggestFor: []string{"test", "check", "start"},
		Long: `Proves the cases on the cluster of the kubeconfig: first the probes, then all specs
in one process of e2e.test. The report says how many cases were really proved, and why
the others were not. A spec that skips itself, and a case that was not run, are never
proved.

A case that this cluster cannot prove, since it has no Linux node for example, is
"not possible here"; --assume runs it anyway. With -c, kubelet and containerd are
restarted on the nodes of the node files, while pods run. Cases that disturb the pods
of others, such as by a reboot, need --disruptive. The exit code is 0 if all others
were proved, 5 if one failed, and 1 if one was not run, or none was proved.

e2e.test is that of the cluster's version, as for "swdt e2e". The results are in the
folder --out: readiness.json, which "readiness report" prints, junit.xml, the page
report.html, and those of e2e.test. With --sonobuoy they are also where Sonobuoy's
worker looks for them.`,
		Example: examples(
			"readiness run", "all that this cluster can prove",
			"readiness run --skip specs", "the probes alone, in a minute",
			"readiness run --category host-process,security", "",
			"readiness run --case probe-kubelet-restart -c win-1.yaml", "restarts kubelet of this node",
			"readiness run --sonobuoy /tmp/sonobuoy/results", "as a plugin of Sonobuoy",
		),
		Args: arguments(cobra.NoArgs),
		PreRunE: func(*cobra.Command, []string) error {
			_, _, _, err := o.complete(a, time.Now())
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runReadiness(cmd.Context(), o) },
	}
	o.cluster.addFlags(cmd)
	o.choice.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.source.Path, "binary", "", "`path` of an e2e.test (default that of the cluster's version)")
	flags.StringVar(&o.source.Build, "checkout", "", "build e2e.test in this checkout of Kubernetes, a `folder`")
	flags.StringVar(&o.source.Mirror, "mirror", "", "`URL or folder` that everything is downloaded from instead of https://dl.k8s.io")
	flags.StringSliceVar(&o.taints, "non-blocking-taints", nil,
		"`keys` of taints of nodes that specs do not need (default "+trial.DefaultTaints+")")
	flags.StringVar(&o.repoList, "repo-list", "",
		"`file` with the registries of test images (default $KUBE_TEST_REPO_LIST)")
	flags.BoolVar(&o.skipChecks, "skip-checks", false, "run the specs whatever the checks of \"swdt e2e\" find")
	flags.StringVar(&o.probes.image, "image", "", "`image` of the probes' Windows pods (default agnhost)")
	flags.StringVar(&o.probes.linuxImage, "linux-image", "", "`image` of the probes' server on Linux (default that of --image)")
	flags.DurationVar(&o.probes.wait, waitTimeout, smoke.DefaultWait, "how long the start of each pod of a probe may take")
	flags.StringVar(&o.out, "out", "", "`folder` for the results, new or empty (default readiness-DATE-TIME)")
	flags.StringVar(&o.sonobuoy, "sonobuoy", "", "`folder` of a Sonobuoy plugin's results, to write them there too")
	flags.StringSliceVar(&o.assume, "assume", nil, "the cluster has these `needs` of cases, whatever its facts show")
	flags.BoolVar(&o.disruptive, "disruptive", false, "run cases that disturb a node and its pods too")
	must(errors.Join(cmd.MarkFlagFilename("binary"), cmd.MarkFlagDirname("checkout"), cmd.MarkFlagDirname("mirror"),
		cmd.MarkFlagDirname("out"), cmd.MarkFlagDirname("sonobuoy"), cmd.MarkFlagFilename("repo-list")))
	must(cmd.RegisterFlagCompletionFunc("assume", cobra.FixedCompletions(readiness.Needs(),
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// complete checks the flags without contacting anything.
func (o *readinessRunOptions) complete(a *app, now time.Time) (readiness.Options, trial.Options, smoke.Options, error) {
	options := readiness.Options{Assume: o.assume, Disruptive: o.disruptive}
	if o.out == "" {
		o.out = now.Format("readiness-20060102-150405")
	}
	specs := trial.Options{Source: o.source, Taints: o.taints, SkipChecks: o.skipChecks, RepoList: o.repoList,
		Folder: filepath.Join(o.out, "e2e")}
	pods, err := o.probes.complete(a)
	if err != nil {
		return options, specs, pods, err
	}
	if options.Cases, err = o.choice.choose(); err != nil {
		return options, specs, pods, err
	}
	if err := readiness.CheckNeeds(o.assume); err != nil {
		return options, specs, pods, usagef("--assume: %v", err)
	}
	if o.source.Path != "" && o.source.Build != "" {
		return options, specs, pods, usagef("--binary and --checkout both name an e2e.test: use one of the two")
	}
	if err := artifact.CheckMirror(o.source.Mirror); err != nil {
		return options, specs, pods, usagef("--mirror %s: %v", o.source.Mirror, err)
	}
	if o.repoList != "" && !exists(o.repoList) {
		return options, specs, pods, usagef("--repo-list %s: there is no such file", o.repoList)
	}
	specs.RepoList, err = absolute(o.repoList) // e2e.test runs in another folder
	return options, specs, pods, err
}

// absolute returns the absolute path of a file; "" if path is empty.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

func (a *app) runReadiness(ctx context.Context, o *readinessRunOptions) error {
	options, specs, pods, err := o.complete(a, time.Now())
	if err != nil {
		return err
	}
	c, err := o.cluster.open()
	if err != nil {
		return err
	}
	kubeconfig, done, err := o.cluster.file(a)
	if err != nil {
		return err
	}
	defer done()
	fresh := !exists(o.out)
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story, machines, err := a.machinesOfNodes()
	if err != nil {
		return err
	}
	options.Reporter = story.Node("")
	specs.Reporter, specs.Kubeconfig, specs.Context = options.Reporter, kubeconfig, o.cluster.context
	options.Suite = readiness.E2ETest(c, specs)
	pods.Reporter = func(node string) ui.Reporter { return story.Node(node) }
	if options.Records, err = leftover.OpenDefault(); err != nil {
		return err
	}
	options.Smoke = readiness.SmokeTest(c, pods, options.Records)
	options.Ability = func(ctx context.Context, probes []string) ([]ability.Result, error) {
		return ability.Run(ctx, c, ability.Options{Probes: probes, Image: pods.Image, LinuxImage: pods.LinuxImage,
			Wait: pods.Wait, Reporter: pods.Reporter, Records: options.Records, Machine: machines,
			Program: a.probes(ctx, options.Reporter)})
	}
	report, err := readiness.Run(ctx, c, options)
	story.End()
	saved := o.save(report)
	if len(report.Cases) == 0 { // nothing was run
		if fresh {
			_ = os.Remove(o.out) // fails if something is in it after all
		}
		return errors.Join(saved, unreachable(explain(ctx, err)))
	}
	return errors.Join(a.print(report, report.WriteText), saved, readinessFailure(ctx, err))
}

// machinesOfNodes returns the ways to the nodes of the node files that the user has named, and begins the progress
// output. It returns no ways if the user has named none: the file at the usual place is no permission to restart
// services of its nodes.
func (a *app) machinesOfNodes() (*ui.Story, func(context.Context, cluster.Node, ui.Reporter) (ability.Machine, error),
	error) {
	if !a.namesNodeFiles() {
		return a.newStory(), nil, nil
	}
	documents, err := a.documents()
	if err != nil {
		return nil, nil, err
	}
	s, err := a.sessionFor(documents)
	if err != nil {
		return nil, nil, err
	}
	s.options.Prompt = nil // a question would stop the run
	return s.story, ability.Machines(s.documents, s.connectAndClose), nil
}

// save writes the report into the folders of the run.
func (o *readinessRunOptions) save(report readiness.Report) error {
	var err error
	if len(report.Cases) > 0 {
		err = report.Save(o.out)
	}
	// Write these files even if nothing was run, since Sonobuoy's worker waits for the file named done.
	if o.sonobuoy != "" {
		err = errors.Join(err, report.WriteSonobuoy(o.sonobuoy))
	}
	return err
}

// readinessFailure adds the exit code to the error of a run. The table already shows the failures.
func readinessFailure(ctx context.Context, err error) error {
	var failed *readiness.FailedError
	if errors.As(err, &failed) {
		return &exitError{code: exitFinding}
	}
	return unreachable(explain(ctx, err))
}

func (a *app) readinessReportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report RESULTS",
		Short: "Print the report of a finished readiness run",
		Long: `Prints the report that "readiness run" has written. RESULTS is the folder, or the
file readiness.json in it. The exit code is that of the run. No cluster is contacted.`,
		Example: examples("readiness report readiness-20261123-180000", "",
			"readiness report readiness.json -o wide", "with the facts that the cases prove"),
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runReadinessReport(cmd.Context(), args[0]) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
}

func (a *app) runReadinessReport(ctx context.Context, path string) error {
	report, err := readiness.LoadReport(path)
	if err != nil {
		return err
	}
	return errors.Join(a.print(report, report.WriteText), readinessFailure(ctx, report.Failure()))
}
