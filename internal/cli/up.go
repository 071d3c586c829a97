package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// upOptions are the flags of up.
type upOptions struct {
	only        []string
	from        string
	kubeconfig  string
	mirror      string
	allowReboot bool
	smoke       bool
	smokeImage  string
	smokeWait   time.Duration
}

// smokeImageFlag names the images of --smoke.
const smokeImageFlag = "--smoke-image"

func (a *app) upCommand() *cobra.Command {
	o := &upOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:        "up [flags]",
		Short:      "Make a cluster with its Windows nodes, from nothing to Ready",
		SuggestFor: []string{"start", "make", "create-all"},
		Long: `Makes the cluster of the document of kind Cluster, and all nodes of the same files:
the control plane with kind, the pod network, the VMs, Windows' settings, and the
joins. It does the work of "swdt cluster create", "network install", "vm create
--start --wait", "setup" and "join", side by side if they do not need each other.

With spec.controlPlane.existing it uses the cluster of a kubeconfig, which it only
reads, and installs no pod network unless spec.network.plugin names one.

Every stage compares first: a second run finds nothing to do, and a run after an
interruption continues. A node finds the API server without any settings.
` + "`swdt down`" + ` removes the things that up has made, and nothing else.

The pod network is Calico, unless spec.network of the cluster's document names another.
With --smoke, the last stage tests pods on the Windows nodes.`,
		Example: examples(
			"up -c cluster.yaml", "",
			"up -c cluster.yaml --dry-run", "what would be made",
			"up -c cluster.yaml -c nodes.yaml --allow-reboot", "reboot if a feature needs it",
			"up -c cluster.yaml --smoke", "and test pods on the Windows nodes",
			"up -c cluster.yaml --only cluster,machine", "only these stages",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runUp(cmd.Context(), o) },
	}))
	flags := cmd.Flags()
	flags.StringSliceVar(&o.only, "only", nil, "run only these `stages`: "+strings.Join(up.Kinds(), ", "))
	flags.StringVar(&o.from, "from-stage", "", "run only this `stage` and the later ones")
	addNewCluster(cmd, &o.kubeconfig)
	flags.StringVar(&o.mirror, "mirror", "", "`URL or folder` that everything is downloaded from instead")
	flags.BoolVar(&o.allowReboot, "allow-reboot", false, "reboot a node if a change needs it, wait, and continue")
	flags.BoolVar(&o.smoke, "smoke", false, `test the cluster at the end, as "swdt cluster check" does`)
	flags.StringVar(&o.smokeImage, "smoke-image", "", "`image` of the pods of --smoke (default agnhost)")
	flags.DurationVar(&o.smokeWait, "smoke-wait", smoke.DefaultWait, "how long the start of each pod of --smoke may take")
	must(errors.Join(cmd.MarkFlagDirname("mirror"),
		cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(up.Kinds(), cobra.ShellCompDirectiveNoFileComp)),
		cmd.RegisterFlagCompletionFunc("from-stage", cobra.FixedCompletions(up.Kinds(), cobra.ShellCompDirectiveNoFileComp))))
	return cmd
}

func (a *app) runUp(ctx context.Context, o *upOptions) error {
	stages, err := o.stages()
	if err != nil {
		return err
	}
	if o.smokeWait <= 0 {
		return usagef("--smoke-wait %s: use a positive time, such as 10m", o.smokeWait)
	}
	if err := checkImage("smoke-image", o.smokeImage); err != nil {
		return err
	}
	if err := artifact.CheckMirror(o.mirror); err != nil {
		return usagef("--mirror %s: %v", o.mirror, err)
	}
	return a.onAll(ctx, up.Up, func(s *session, doc config.ClusterDocument, options *up.Options) error {
		if doc.Cluster.Spec.ControlPlane.Existing != nil && o.kubeconfig != "" {
			return usagef("--kubeconfig is the file for a new cluster, but spec.controlPlane.existing in %s names one that "+
				"exists: write its kubeconfig there", doc.File)
		}
		options.Only, options.Kubeconfig = stages, o.kubeconfig
		if o.smoke || slices.Contains(stages, up.Check) {
			options.Smoke = &smoke.Options{Image: o.smokeImage, LinuxImage: o.smokeImage, Wait: o.smokeWait,
				ImageFlag: smokeImageFlag, LinuxImageFlag: smokeImageFlag}
		}
		options.Join = join.Options{
			Mirror: o.mirror, Holder: plan.Holder("up"), Sources: source.NewSet(source.Options{}),
			Artifacts: artifact.NewStore(artifact.Options{}), Depot: s.depot(), AllowReboot: o.allowReboot,
			FindPodNetwork: findPodNetwork,
		}
		return nil
	})
}

// stages returns the stages to run, or nil for all.
func (o *upOptions) stages() ([]string, error) {
	all := up.Kinds()
	for _, kind := range o.only {
		if !slices.Contains(all, kind) {
			return nil, usagef("--only %s: use %s", kind, ui.Alternatives(all))
		}
	}
	if o.from == "" {
		return o.only, nil
	}
	if len(o.only) > 0 {
		return nil, usagef("--from-stage and --only both choose stages: use one of them")
	}
	first := slices.Index(all, o.from)
	if first < 0 {
		return nil, usagef("--from-stage %s: use %s", o.from, ui.Alternatives(all))
	}
	later := all[first:]
	if !o.smoke && o.from != up.Check { // the smoke test runs only on demand
		later = slices.DeleteFunc(later, func(kind string) bool { return kind == up.Check })
	}
	return later, nil
}

func (a *app) downCommand() *cobra.Command {
	yes, noDrain := false, false
	cmd := forNodes(&cobra.Command{
		Use:        "down [flags]",
		Short:      "Remove the cluster and the VMs that up has made",
		SuggestFor: []string{"destroy", "teardown"},
		Long: `Removes the things that "swdt up" has made for the cluster of the files: it
takes back the joins of machines that stay, deletes VMs with their disks, and
the cluster with everything in it. Things that were there before stay, as do
Windows' settings and the cluster that spec.controlPlane.existing names; down
lists them. Asks first, unless --yes is set.

Nodes of a cluster that stays are drained first. --no-drain ends their pods
without asking the pods' owners: data that pods have only on the node is lost, and so
are requests that they work on. With it, a node that does not answer is left behind:
its kubelet and files stay on the machine, and its Node in a cluster that stays.
down lists such nodes, with the commands that remove the rest later.`,
		Example: examples("down -c cluster.yaml", "", "down -c cluster.yaml --yes", "in a script",
			"down -c cluster.yaml --no-drain", "although a node does not answer"),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			prompt := a.prompter(a.newStory())
			return a.onAll(cmd.Context(), up.Down, func(_ *session, _ config.ClusterDocument, options *up.Options) error {
				options.NoDrain = noDrain
				options.Confirm = func(ctx context.Context, things []string) error {
					question := "Remove " + strings.Join(things, ", ") + "?"
					if noDrain {
						question = "Remove " + strings.Join(things, ", ") + ", without draining nodes?"
					}
					return confirm(ctx, prompt, yes, question)
				}
				return canConfirm(prompt, yes, "Remove the cluster, and the VMs that swdt has made for it?")
			})
		},
	})
	addYesFlag(cmd, &yes)
	cmd.Flags().BoolVar(&noDrain, "no-drain", false, "do not evict pods first, and leave nodes behind that do not answer")
	return cmd
}

// wholeWork is up.Up or up.Down.
type wholeWork func(context.Context, config.ClusterDocument, []config.Document, up.Options) (up.Report, error)

// completeUp adds a command's own options.
type completeUp func(*session, config.ClusterDocument, *up.Options) error

// onAll does the work on the cluster and the nodes of the files, and prints its report.
func (a *app) onAll(ctx context.Context, work wholeWork, complete completeUp) error {
	sources, err := a.documentSources()
	if err != nil {
		return err
	}
	doc, documents, err := config.LoadAll(sources, a.streams.In)
	if err != nil {
		return err
	}
	a.loaded = len(documents)
	chosen := len(a.global.nodes) > 0 || a.global.selector != ""
	if len(documents) > 0 || chosen { // a cluster may have no nodes yet
		if documents, err = config.Select(documents, a.global.nodes, a.global.selector); err != nil {
			return err
		}
	}
	s, err := a.sessionFor(documents)
	if err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	board := s.story.NewBoard(doc.Cluster.Metadata.Name)
	// kind's messages and those of the cluster's stage have the same reporter.
	ofCluster := board.Reporter("")
	reporter := func(node string) ui.Reporter {
		if node == "" {
			return ofCluster
		}
		return board.Reporter(node)
	}
	options := up.Options{
		Connect: s.connect, Reporter: reporter, Board: board, Times: earlierTimes("up-times.json"),
		BootLimit: bootLimit, NetworkLimit: defaultNetworkWait, DryRun: a.global.dryRun,
	}
	if err := complete(s, doc, &options); err != nil {
		return err
	}
	a.readCluster = true
	a.rememberExisting(doc)
	if kind := doc.Cluster.Spec.ControlPlane.Kind; kind != nil {
		if options.Clusters, err = a.clustersOfKind(ctx, kind.Runtime, ofCluster); err != nil {
			return err
		}
	}
	if options.Machines, err = a.machines(); err != nil {
		return err
	}
	report, err := work(ctx, doc, documents, options)
	s.story.End()
	if err = explain(ctx, err); err != nil && len(report.Stages) == 0 {
		return err
	}
	for i := range report.Kept {
		report.Kept[i] = a.remedies("", report.Kept[i])
	}
	text := func(p *ui.Page) error { return report.WriteText(p, a.global.dryRun) }
	return errors.Join(a.print(report, text), err)
}
