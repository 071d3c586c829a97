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
}

// open is the cluster of the flags, by kubectl's rules. Nothing is contacted.
func (o *clusterOptions) open() (*cluster.Cluster, error) {
	return cluster.Open(cluster.Options{Kubeconfig: o.kubeconfig, Context: o.context})
}

// named is whether somebody said on the command line which cluster.
func (o *clusterOptions) named() bool { return o.kubeconfig != "" || o.context != "" }

// atHandTimeout is how long a cluster that nobody asked for is waited for.
const atHandTimeout = 3 * time.Second

// atHand is the cluster for a command that works without: nil where neither a
// flag nor KUBECONFIG names one. One that only KUBECONFIG names, which may be
// about something else, is left out with a word of it where it does not answer.
func (a *app) atHand(ctx context.Context, o *clusterOptions, r ui.Reporter) (*cluster.Cluster, error) {
	if !o.named() && a.env.Getenv("KUBECONFIG") == "" {
		return nil, nil
	}
	found, err := o.open()
	if o.named() {
		return found, err
	}
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, atHandTimeout)
		defer cancel()
		_, err = found.Version(bounded)
	}
	if err != nil {
		r.Warn("KUBECONFIG is set, but its cluster is of no use, so nobody is asked whether the node is Ready: %v", err)
		return nil, nil
	}
	return found, nil
}
