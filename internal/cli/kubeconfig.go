package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

// clusterOptions select the API server, by kubectl's flags.
type clusterOptions struct {
	kubeconfig, context string
	noStdin             bool // the kubeconfig's exec plugins get no stdin
}

// usesCluster marks the commands that ask the cluster of --kubeconfig and --context, which their help shows. makesCluster
// marks those that add a new cluster to --kubeconfig.
const (
	usesCluster  = "swdt-uses-cluster"
	makesCluster = "swdt-makes-cluster"
)

// addFlags adds kubectl's flags to a command that asks the cluster. Every command has them; here they fill o.
func (o *clusterOptions) addFlags(cmd *cobra.Command) {
	annotate(cmd, usesCluster)
	o.add(cmd.Flags())
	must(cmd.MarkFlagFilename("kubeconfig"))
	must(cmd.RegisterFlagCompletionFunc("context", o.completeContexts))
}

func (o *clusterOptions) add(flags *pflag.FlagSet) {
	addKubeconfig(flags, &o.kubeconfig)
	flags.StringVar(&o.context, "context", "", "`name` of the kubeconfig's context (default its current one)")
}

func addKubeconfig(flags *pflag.FlagSet, value *string) {
	flags.StringVar(value, "kubeconfig", "", "`file` with the cluster: the one to ask, or that is made (default $KUBECONFIG, "+
		"else ~/.kube/config)")
}

// addNewCluster adds --kubeconfig to a command that makes a cluster.
func addNewCluster(cmd *cobra.Command, kubeconfig *string) {
	annotate(cmd, makesCluster)
	addKubeconfig(cmd.Flags(), kubeconfig)
	must(cmd.MarkFlagFilename("kubeconfig"))
}

// checkContext rejects --context for a command that makes a cluster, whose context gets a name of its own.
func (a *app) checkContext(cmd *cobra.Command) error {
	if cmd.Annotations[makesCluster] == "" || a.global.cluster.context == "" {
		return nil
	}
	return usagef("%s makes a context of its own in the kubeconfig: leave --context out", cmd.CommandPath())
}

// completeContexts completes the contexts of the kubeconfig.
func (o *clusterOptions) completeContexts(_ *cobra.Command, _ []string, toComplete string) ([]string,
	cobra.ShellCompDirective) {
	return beginningWith(cluster.Contexts(o.kubeconfig), toComplete), cobra.ShellCompDirectiveNoFileComp
}

// open returns the cluster that the flags select, by kubectl's rules. It contacts nothing.
func (o *clusterOptions) open() (*cluster.Cluster, error) {
	return cluster.Open(cluster.Options{Kubeconfig: o.kubeconfig, Context: o.context, NoStdin: o.noStdin})
}

// named reports whether the command line names the cluster.
func (o *clusterOptions) named() bool { return o.kubeconfig != "" || o.context != "" }

// readinessUnchecked is a part of a warning. It names the check that a command skips if it has no
// cluster.
const readinessUnchecked = "whether the node is Ready is not checked"

// impliedClusterTimeout limits the wait for a cluster that the command line does not name.
const impliedClusterTimeout = 3 * time.Second

// optionalCluster returns the cluster for a command that also works without a cluster. It returns nil
// if neither a flag nor KUBECONFIG names a cluster, or if the cluster that only KUBECONFIG
// names cannot be used. In the second case it prints a warning. The last argument is the part of
// this warning that describes the work that the command leaves out.
func (a *app) optionalCluster(ctx context.Context, o *clusterOptions, r ui.Reporter, without string) (*cluster.Cluster,
	error) {
	return a.optionalClusterOnce(ctx, o, r, without, func(ctx context.Context, found *cluster.Cluster) error {
		if o.named() { // no check: the command itself reports what is wrong with the cluster
			return nil
		}
		_, err := found.Version(ctx)
		return err
	})
}

// optionalClusterOnce is optionalCluster for a command that needs nothing more from the cluster after ask has
// returned. A cluster that only KUBECONFIG names may have nothing to do with this command:
// such a cluster gets little time, and if it fails, swdt warns and continues without a cluster.
func (a *app) optionalClusterOnce(ctx context.Context, o *clusterOptions, r ui.Reporter, without string,
	ask func(context.Context, *cluster.Cluster) error) (*cluster.Cluster, error) {
	if !o.named() && a.env.Getenv("KUBECONFIG") == "" {
		return nil, nil
	}
	if !o.named() {
		bounded, cancel := context.WithTimeout(ctx, impliedClusterTimeout)
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
	r.Warn("KUBECONFIG is set, but its cluster cannot be used, so %s: %v", without, err)
	return nil, nil
}

// file returns the path of a kubeconfig for another program. If swdt must merge several kubeconfigs,
// the path is that of a new file, and done removes this file.
func (o *clusterOptions) file(a *app) (path string, done func(), err error) {
	done = func() {}
	path = o.kubeconfig
	if path == "" {
		files := splitFiles(a.env.Getenv("KUBECONFIG"))
		if len(files) > 1 {
			return o.merged()
		}
		if len(files) == 1 {
			path = files[0]
		}
	}
	if path == "" {
		home, err := localfile.Home()
		if err != nil {
			return "", done, err
		}
		path = filepath.Join(home, ".kube", "config")
	}
	path, err = filepath.Abs(path)
	return path, done, err
}

// merged writes a kubeconfig with the selected context alone, into a folder that only this user can
// read. If swdt is killed and leaves the folder, the next swdt removes it.
func (o *clusterOptions) merged() (string, func(), error) {
	text, err := cluster.Kubeconfig(cluster.Options{Kubeconfig: o.kubeconfig, Context: o.context})
	if err != nil {
		return "", nil, err
	}
	data, err := localfile.DataFolder()
	if err != nil {
		return "", nil, err
	}
	parent := filepath.Join(data, "swdt", "e2e")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	staging, err := localfile.Stage(parent, "kubeconfig")
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(staging.Path, "config")
	if err := os.WriteFile(path, text, localfile.Private); err != nil {
		return "", nil, errors.Join(err, staging.Remove())
	}
	return path, func() { _ = staging.Remove() }, nil
}
