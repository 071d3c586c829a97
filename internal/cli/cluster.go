package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
)

// clusterOptions say which API server, by kubectl's flags.
type clusterOptions struct{ kubeconfig, context string }

func (o *clusterOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says which cluster (default $KUBECONFIG, else ~/.kube/config)")
	cmd.Flags().StringVar(&o.context, "context", "", "`name` of the kubeconfig's context (default its current one)")
	must(cmd.MarkFlagFilename("kubeconfig"))
	must(cmd.RegisterFlagCompletionFunc("context", o.completeContexts))
}

// completeContexts completes the contexts of the kubeconfig.
func (o *clusterOptions) completeContexts(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return beginningWith(cluster.Contexts(o.kubeconfig), toComplete), cobra.ShellCompDirectiveNoFileComp
}

// open is the cluster of the flags, by kubectl's rules. Nothing is contacted.
func (o *clusterOptions) open() (*cluster.Cluster, error) {
	return cluster.Open(cluster.Options{Kubeconfig: o.kubeconfig, Context: o.context})
}

// named is whether somebody said on the command line which cluster.
func (o *clusterOptions) named() bool { return o.kubeconfig != "" || o.context != "" }

// nobodyAsked is what goes without a cluster that would tell of its nodes.
const nobodyAsked = "nobody is asked whether the node is Ready"

// atHandTimeout is how long a cluster that nobody asked for is waited for.
const atHandTimeout = 3 * time.Second

// atHand is the cluster for a command that works without: nil where neither a
// flag nor KUBECONFIG names one. Without says what the command does not do then.
func (a *app) atHand(ctx context.Context, o *clusterOptions, r ui.Reporter, without string) (*cluster.Cluster, error) {
	return a.askAtHand(ctx, o, r, without, func(ctx context.Context, found *cluster.Cluster) error {
		if o.named() { // by somebody who wants to hear what is wrong with it
			return nil
		}
		_, err := found.Version(ctx)
		return err
	})
}

// askAtHand is atHand for a command that has all it wants of the cluster when ask
// has ended. A cluster that only KUBECONFIG names may be about something else: it
// gets little time, and is left out with a word of it where it is of no use.
func (a *app) askAtHand(ctx context.Context, o *clusterOptions, r ui.Reporter, without string, ask func(context.Context, *cluster.Cluster) error) (*cluster.Cluster, error) {
	if !o.named() && a.env.Getenv("KUBECONFIG") == "" {
		return nil, nil
	}
	if !o.named() {
		bounded, cancel := context.WithTimeout(ctx, atHandTimeout)
		defer cancel()
		ctx = bounded
	}
	found, err := o.open()
	if err == nil {
		err = ask(ctx, found)
	}
	switch {
	case err == nil:
		return found, nil
	case o.named():
		return nil, err
	}
	r.Warn("KUBECONFIG is set, but its cluster is of no use, so %s: %v", without, err)
	return nil, nil
}
