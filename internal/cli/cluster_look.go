package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/existing"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/ui"
)

// kindDocument returns the only cluster of the files for a command that works only on clusters of
// kind. remedy is the remedy if the cluster is an existing one.
func (a *app) kindDocument(remedy string) (config.ClusterDocument, error) {
	doc, err := a.clusterDocument()
	if err == nil && doc.Cluster.Spec.ControlPlane.Existing != nil {
		err = existing.NotMadeProblem(doc, remedy)
	}
	return doc, err
}

// rememberExisting makes the commands in remedies name the document's cluster, if the document's
// control plane is an existing one.
func (a *app) rememberExisting(doc config.ClusterDocument) {
	if spec := doc.Cluster.Spec.ControlPlane.Existing; spec != nil {
		a.ofDocument = clusterOptions{kubeconfig: doc.Resolve(spec.Kubeconfig), context: spec.Context}
	}
}

// openDocument returns the cluster of a document. Like `swdt up`, it uses the kubeconfig of the existing
// control plane, or the one that kind returns. A cluster of kind must exist.
func (a *app) openDocument(ctx context.Context, doc config.ClusterDocument) (found *cluster.Cluster, err error) {
	if doc.Cluster.Spec.ControlPlane.Existing != nil {
		a.rememberExisting(doc)
		return existing.Open(doc)
	}
	err = a.withCluster(ctx, doc, func(ctx context.Context, all *kindcluster.Clusters, doc config.ClusterDocument,
		_ ui.Reporter) error {
		opened, err := all.Open(ctx, doc.Cluster.Metadata.Name)
		found = opened.API
		return err
	})
	return found, err
}

func (a *app) clusterStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the cluster: its API server, its Linux nodes, and differences to its document",
		Long: `Shows the API server and the Linux nodes of the cluster, and each field of the
document whose value the cluster does not have, with the file and line, the
cluster's value, and a remedy. Fields that the document leaves out are compared
with their defaults; images and mirrors are looked up on each Linux node. For an
existing cluster, only the addresses are compared.`,
		Example: examples("cluster status -c cluster.yaml", ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			doc, err := a.clusterDocument()
			if err != nil {
				return err
			}
			if doc.Cluster.Spec.ControlPlane.Existing != nil {
				return a.runExistingStatus(cmd.Context(), doc)
			}
			return a.onCluster(cmd.Context(), doc, func(
				ctx context.Context, all *kindcluster.Clusters, doc config.ClusterDocument, _ ui.Reporter,
			) (kindcluster.Report, error) {
				opened, err := all.Compare(ctx, doc)
				a.remedyDifferences(opened.Report)
				return opened.Report, err
			})
		},
	}
}

// remedyDifferences renders the commands in the remedies of a cluster's differences.
func (a *app) remedyDifferences(report kindcluster.Report) {
	for i, d := range report.Differences {
		report.Differences[i].Remedy = a.remedies("", d.Remedy)
	}
}

func (a *app) runExistingStatus(ctx context.Context, doc config.ClusterDocument) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	a.rememberExisting(doc)
	opened, err := existing.Status(ctx, doc)
	return a.printCluster(ctx, doc, opened.Report, err)
}

func (a *app) clusterKubeconfigCommand() *cobra.Command {
	internal := false
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig of the cluster alone",
		Long: `Prints a kubeconfig with the cluster's context alone. For spec.controlPlane.existing
that is what "kubectl config view --minify --flatten --raw" prints: certificates and
keys are in it, and a program that signs in (exec) is named, but not run.`,
		Example: examples("cluster kubeconfig -c cluster.yaml > admin.conf", "",
			"cluster kubeconfig -c cluster.yaml --internal > admin.conf", "for nodes on kind's bridge"),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			doc, err := a.clusterDocument()
			if err != nil {
				return err
			}
			if doc.Cluster.Spec.ControlPlane.Existing != nil {
				return a.printExistingKubeconfig(doc, internal)
			}
			return a.withCluster(cmd.Context(), doc, func(
				_ context.Context, all *kindcluster.Clusters, doc config.ClusterDocument, _ ui.Reporter,
			) error {
				text, err := all.Kubeconfig(doc.Cluster.Metadata.Name, internal)
				if err != nil {
					return err
				}
				return a.printBytes(text)
			})
		},
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "with the API server's name on kind's bridge, not its "+
		"port on this machine")
	return cmd
}

func (a *app) printExistingKubeconfig(doc config.ClusterDocument, internal bool) error {
	if internal {
		return usagef("--internal is for a cluster of kind, but %s names an existing one: leave the flag out", doc.File)
	}
	text, err := existing.Kubeconfig(doc)
	if err != nil {
		return err
	}
	return a.printBytes(text)
}
