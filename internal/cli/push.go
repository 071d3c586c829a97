package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/push/build"
	"github.com/swdt-dev/swdt/internal/ui"
)

type pushOptions struct {
	only   []string // the components, also those of files
	files  []pushedFile
	save   string // the node file to write; "": none
	force  bool
	strict bool
	start  bool
	build  bool
	watch  bool
	then   []string

	cluster      clusterOptions
	drain        bool
	drainTimeout time.Duration
}

// seedsPush is the name of push in the programs from which swdt grew. It stays an alias, for their scripts.
const seedsPush = "kubernetes"

func (a *app) pushCommand() *cobra.Command {
	o := &pushOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:     "push [NAME|FILE…]",
		Aliases: []string{seedsPush},
		Short:   "Push binaries, restart their services, roll back if they fail",
		Long: `Pushes the binaries of spec.kubernetes.provisioners to the node, those named or
all, in one transaction. It sends the binaries whose SHA-256 differs while the
services still run, stops the services, swaps the files by renaming, starts the
services and checks them. If a service does not start or fails its check, the
old binaries are put back and started, and the exit code is 4. If nothing
differs, nothing is changed.

No node file is needed for a FILE, such as ./kubelet.exe or NAME=FILE: the name of
the file is that of the component and of its service, and the file that the service
runs on the node is replaced, in the same transaction. --to names the node:
USER@HOST, a Host of ~/.ssh/config or, with --via kubernetes, a node of the cluster.

If the service runs another file than the one at destination, or only a service of
another name exists, nothing is changed, and the exit code is 2: tests after such a
push would test the old binary. The provisioner's service: names the service that
runs the file, or none. A service that is stopped gets the new file and stays
stopped, unless --start is set.

If --kubeconfig or KUBECONFIG names the cluster of the node, the node must also
become Ready in the cluster, with a lease that the new kubelet renewed, else the
old binaries are put back. --drain evicts the node's pods before the services
stop and uncordons the node after; if a PodDisruptionBudget keeps pods from
leaving in time, nothing is changed.

With --watch, --then runs a command of swdt whenever all nodes have a new build:
` + strings.Join(thenCommands(), ", ") + `.
It gets the node files, nodes and cluster of this command. It is no shell command:
it is split into words, and nothing is expanded. A build that is ready to be pushed
interrupts it before a node is changed. A failure does not end the watch; after q,
the exit code is that of the last command that was not interrupted.`,
		Example: examples(
			"push", "push all that differs",
			"push ./kubelet.exe --to win-1", "a file, without a node file",
			"push kubelet", "only kubelet, as with --only kubelet",
			"push --dry-run", "what would be replaced and restarted",
			"push --force --only containerd", "restart it even if it does not differ",
			"push --build", "run the provisioners' builds first",
			"push --watch", "and again whenever a binary or its sources change",
			"push --watch --then 'e2e --focus Density'", "test each build that was pushed",
			"push --drain --kubeconfig admin.conf", "evict the node's pods first",
		),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeComponents,
		RunE: func(cmd *cobra.Command, names []string) error {
			names, files, err := splitFileArguments(names)
			if err != nil {
				return err
			}
			o.files, o.only = files, append(o.only, names...)
			for _, f := range files {
				o.only = append(o.only, f.component)
			}
			if cmd.Flags().Changed("only") && len(o.only) == 0 {
				return usagef("--only is empty: name the components to push, or leave it out for all")
			}
			if len(o.then) > 0 && !o.watch {
				return usagef("--then runs commands after each push of --watch: set --watch, too")
			}
			return a.runPush(cmd.Context(), o)
		},
	}))
	cmd.Flags().StringSliceVar(&o.only, "only", nil, "`name`s of the components to push (default all)")
	cmd.Flags().BoolVar(&o.force, "force", false, "restart the services even if nothing differs")
	cmd.Flags().BoolVar(&o.strict, "strict", false,
		"refuse a binary that does not report the version of the node file, and one that no service would run")
	cmd.Flags().StringVar(&o.save, "save", "",
		"after a push of a file, write the node `file` that would do the same, and trust it (default "+config.HereSource+")")
	cmd.Flags().Lookup("save").NoOptDefVal = config.HereSource
	cmd.Flags().BoolVar(&o.start, "start", false, "start the services that are stopped, too")
	cmd.Flags().BoolVar(&o.build, "build", false,
		"run the build of each component first, as the node file's build: says")
	cmd.Flags().BoolVar(&o.watch, "watch", false,
		"push again whenever a binary changes, and build when its sources do, until Ctrl-C or q")
	cmd.Flags().StringArrayVar(&o.then, "then", nil,
		"with --watch: run this swdt `command` after each push; repeat the flag for more")
	cmd.Flags().BoolVar(&o.drain, "drain", false,
		"cordon the node and evict its pods before anything is stopped, uncordon it after")
	cmd.Flags().DurationVar(&o.drainTimeout, "drain-timeout", defaultDrainTimeout, "how long pods may take to leave")
	o.cluster.addFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("drain", "watch")
	must(cmd.RegisterFlagCompletionFunc("only", listed(a.completeComponents)))
	must(cmd.RegisterFlagCompletionFunc("then", cobra.FixedCompletions(thenCommands(),
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// defaultDrainTimeout is long enough for pods that shut down gracefully.
const defaultDrainTimeout = 5 * time.Minute

func (a *app) runPush(ctx context.Context, o *pushOptions) error {
	then, err := a.newThen(o.then)
	if err != nil {
		return err
	}
	if len(o.files) > 0 && (o.watch || o.build) {
		return usagef("--watch and --build need a node file, which says how the binary is made: name one with -c, and no file here")
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	if err := o.checkSave(s.documents); err != nil {
		return err
	}
	var open unplaced
	if s.documents, open, err = withFiles(s.documents, o.files); err != nil {
		return err
	}
	if err := a.componentsExist(s.documents, o.only); err != nil {
		return err
	}
	options := push.Options{
		Sources: source.NewSet(source.Options{}), Depot: s.depot(),
		Only: o.only, Force: o.force, Strict: o.strict, Start: o.start, DryRun: a.global.dryRun,
	}
	if err := a.clusterOf(ctx, s, o, &options); err != nil {
		return err
	}
	builds, err := build.NewSet(s.documents, o.only)
	if err != nil {
		return err
	}
	if o.watch {
		return a.runWatch(ctx, s, options, builds, then)
	}
	if o.build {
		if err := a.buildOnce(ctx, s, builds); err != nil {
			s.story.End()
			return err
		}
	}
	push.Ahead(ctx, s.documents, options)
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (push.NodeResult, error) {
		doc, err := push.Place(ctx, n, doc, open[doc.Node.Metadata.Name], r)
		if err != nil {
			return push.NodeResult{}, err
		}
		return push.Push(ctx, n, doc, options, r)
	})
	if err := a.printDeploy(results); err != nil {
		return err
	}
	return a.saved(o, s.documents, results)
}

// clusterOf fills in the cluster of the nodes, if flags or KUBECONFIG name one.
func (a *app) clusterOf(ctx context.Context, s *session, o *pushOptions, options *push.Options) error {
	if o.drainTimeout <= 0 {
		return usagef("--drain-timeout %s: use a positive time, such as 5m", o.drainTimeout)
	}
	found, err := a.optionalCluster(ctx, &o.cluster, s.story.Node(""), readinessUnchecked)
	switch {
	case err != nil:
		return err
	case found == nil && o.drain:
		return usagef("--drain needs the node's cluster: name its kubeconfig with --kubeconfig or KUBECONFIG")
	case found == nil:
		return nil
	}
	options.Cluster = found
	if o.drain {
		options.Drain = &cluster.DrainOptions{Timeout: o.drainTimeout}
	}
	return nil
}

// printDeploy prints the result of a push or a rollback.
func (a *app) printDeploy(results []fleet.Result[push.NodeResult]) error {
	for _, result := range results {
		for _, c := range result.Value.Components {
			c.Message = a.remedies(result.Name(), c.Message)
		}
	}
	report := push.NewReport(results)
	err := a.print(report, func(p *ui.Page) error { return report.WriteText(p) })
	if err != nil {
		return err
	}
	if a.inText() { // stdout already has the reasons
		for i, result := range results {
			results[i].Err = push.Shown(result.Value, result.Err)
		}
	}
	return fleet.Failures(results)
}

// componentsExist checks the names that the user typed against the node files, before
// swdt contacts any node.
func (a *app) componentsExist(documents []config.Document, names []string) error {
	var known []string
	has := map[string]bool{}
	for _, document := range documents {
		for _, p := range document.Node.Spec.Kubernetes.Provisioners {
			if name := strings.ToLower(p.Name); !has[name] {
				has[name] = true
				known = append(known, p.Name)
			}
		}
	}
	switch {
	case len(known) > 0:
	case !slices.ContainsFunc(documents, config.Document.OfFile):
		return usagef("there is nothing to push: no node file names the binary; name the file, as in `swdt push FILE`, or a node " +
			"file with spec.kubernetes.provisioners with -c")
	default:
		return usagef("the node file has nothing to push: its spec.kubernetes.provisioners are empty")
	}
	for _, name := range names {
		if has[strings.ToLower(name)] {
			continue
		}
		if similar := closest(name, known); similar != "" {
			return usagef("the node file has no component %q; did you mean %s?", name, similar)
		}
		return usagef("the node file has no component %q (%[2]s %[1]s chooses a node of that name); it has %[3]s", name,
			nodeFlagOf(a.invoked), strings.Join(known, ", "))
	}
	return nil
}
