package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := group("cluster", "Make a cluster for Windows nodes on this machine, and check clusters",
		a.clusterInitCommand(), a.clusterCreateCommand(), a.clusterDeleteCommand(), a.clusterStatusCommand(),
		a.clusterCheckCommand(), a.clusterKubeconfigCommand())
	cmd.Long = `Makes the cluster that a document of kind Cluster describes: Kubernetes on Linux,
in containers of kind on this machine. The document has a file of its own, or is
beside the nodes in a node file.

swdt changes only clusters that it has made itself. Of the cluster that
spec.controlPlane.existing names, it shows the status and the kubeconfig. A new
cluster has no pod network, since kind's own does not support Windows. The nodes of
the cluster are not Ready until you install a pod network. "cluster check" tests the
Windows nodes of any cluster.`
	cmd.Example = examples(
		"cluster init > cluster.yaml", "a commented document to start from",
		"cluster create -c cluster.yaml", "",
		"cluster status -c cluster.yaml", "",
		"cluster check", "do pods on the Windows nodes work?",
		"cluster delete -c cluster.yaml", "",
	)
	return cmd
}

func (a *app) clusterInitCommand() *cobra.Command {
	return a.starterCommand("Print or write a commented cluster document to start from", config.ClusterStarter, examples(
		"cluster init --write", "writes swdt.yaml, and trusts it",
		"cluster init > cluster.yaml", "a file that you name with -c cluster.yaml",
	))
}

// clusterWork is a command's work on the cluster of the document.
type clusterWork func(context.Context, *kindcluster.Clusters, config.ClusterDocument, ui.Reporter) (
	kindcluster.Report, error)

// onCluster does the work on a cluster of kind, and prints its report.
func (a *app) onCluster(ctx context.Context, doc config.ClusterDocument, work clusterWork) error {
	return a.withCluster(ctx, doc, func(
		ctx context.Context, clusters *kindcluster.Clusters, doc config.ClusterDocument, r ui.Reporter,
	) error {
		report, err := work(ctx, clusters, doc, r)
		ui.Done(r)
		return a.printCluster(ctx, doc, report, err)
	})
}

// printCluster prints the report of a command on a cluster. If the command has failed and the
// format is text, printCluster prints nothing and returns the error.
func (a *app) printCluster(ctx context.Context, doc config.ClusterDocument, report kindcluster.Report,
	err error) error {
	if err = explain(ctx, err); err != nil {
		report.Outcome = fleet.NewOutcome(doc.Cluster.Metadata.Name, fleet.Failed, err)
		if a.inText() {
			return err
		}
	}
	return errors.Join(a.print(report, report.WriteText), err)
}

// clusterDocument returns the only cluster of the files.
func (a *app) clusterDocument() (config.ClusterDocument, error) {
	sources, err := a.documentSources()
	if err != nil {
		return config.ClusterDocument{}, err
	}
	return config.LoadCluster(sources, a.streams.In)
}

// withCluster opens the clusters of kind, and does work on the one that the document describes.
func (a *app) withCluster(ctx context.Context, doc config.ClusterDocument, do func(
	context.Context, *kindcluster.Clusters, config.ClusterDocument, ui.Reporter) error,
) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	defer story.End()
	r := story.Node("")
	clusters, err := a.clustersOfKind(ctx, doc.Cluster.Spec.ControlPlane.Kind.Runtime, r)
	if err != nil {
		return err
	}
	return explain(ctx, do(ctx, clusters, doc, r))
}

// clustersOfKind returns the clusters of kind in a container runtime. If runtime is empty, it uses
// the first container runtime that answers.
func (a *app) clustersOfKind(ctx context.Context, runtime string, r ui.Reporter) (*kindcluster.Clusters, error) {
	kind, err := a.env.Kind(ctx, runtime, kindcluster.Progress(r))
	if err != nil {
		return nil, err
	}
	return kindcluster.New(kind, "")
}

func (a *app) clusterCreateCommand() *cobra.Command {
	o := kindcluster.Options{}
	cmd := canDryRun(&cobra.Command{
		Use:        "create [flags]",
		Short:      "Make the cluster, unless it exists",
		SuggestFor: []string{"up", "new", "start"},
		Long: `Makes the cluster with kind, adds it to the kubeconfig, and makes its context the
current one, as kind does. A second run changes nothing. If create fails or is
interrupted, it removes what it has made; if swdt is killed, the next create does.`,
		Example: examples("cluster create -c cluster.yaml", "", "cluster create -c cluster.yaml --dry-run", ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			doc, err := a.kindDocument("`swdt up` uses it as it is; for a new cluster, write controlPlane: {kind: {}}")
			if err != nil {
				return err
			}
			if a.global.dryRun {
				return a.planCluster(cmd.Context(), doc)
			}
			return a.onCluster(cmd.Context(), doc, func(
				ctx context.Context, all *kindcluster.Clusters, doc config.ClusterDocument, r ui.Reporter,
			) (kindcluster.Report, error) {
				return all.Create(ctx, doc, o, r)
			})
		},
	})
	addNewCluster(cmd, &o.Kubeconfig)
	return cmd
}

func (a *app) planCluster(ctx context.Context, doc config.ClusterDocument) error {
	return a.withCluster(ctx, doc, func(
		ctx context.Context, all *kindcluster.Clusters, doc config.ClusterDocument, _ ui.Reporter,
	) error {
		plan, err := all.Plan(ctx, doc)
		if err != nil {
			return err
		}
		return a.print(plan, func(p *ui.Page) error { return plan.WriteText(p) })
	})
}

func (a *app) clusterDeleteCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:        "delete",
		Short:      "Delete the cluster and everything in it",
		SuggestFor: []string{"rm", "remove", "down", "destroy"},
		Long: `Deletes the containers of the cluster with all that is in them, and the
cluster's entry in the kubeconfig. Asks first, unless --yes is set.`,
		Example: examples("cluster delete -c cluster.yaml", "", "cluster delete -c cluster.yaml --yes", "in a script"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			prompt := a.prompter(a.newStory())
			if err := canConfirm(prompt, yes, "Delete the cluster and everything in it?"); err != nil {
				return err
			}
			doc, err := a.kindDocument("delete it with the tool that made it; `swdt down` removes the nodes and the VMs " +
				"that `swdt up` has added")
			if err != nil {
				return err
			}
			return a.onCluster(cmd.Context(), doc, func(
				ctx context.Context, all *kindcluster.Clusters, doc config.ClusterDocument, r ui.Reporter,
			) (kindcluster.Report, error) {
				name := doc.Cluster.Metadata.Name
				if err := confirm(ctx, prompt, yes, "Delete cluster "+name+" and everything in it?"); err != nil {
					return kindcluster.Report{}, err
				}
				return all.Delete(ctx, name, r)
			})
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}
