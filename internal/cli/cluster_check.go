package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/ui"
)

// clusterCheckOptions are the flags of cluster check.
type clusterCheckOptions struct {
	cluster    clusterOptions
	image      string
	linuxImage string
	wait       time.Duration
	keep       bool
}

func (a *app) clusterCheckCommand() *cobra.Command {
	o := &clusterCheckOptions{}
	cmd := canDryRun(&cobra.Command{
		Use:        "check [flags]",
		Short:      "Test pods on each Windows node: start, DNS, Services, both ways to Linux",
		SuggestFor: []string{"test", "smoke", "verify", "validate", "doctor"},
		Long: `Runs a pod on each Windows node, and a server with a Service on a Linux node, and
tests one leg after the other. The pod is scheduled and started, logs and exec work,
it resolves a Service's name, it reaches the Linux pod and the Service, the Linux pod
reaches it, and it reaches the API server. A leg that fails is named with its cause
and a remedy; those that need it are not run. The exit code is 5 unless all passed.

-n and -l choose Windows nodes by their names and labels in the cluster. The cluster
is that of the kubeconfig; with -c it is the one of the document of kind Cluster.

All objects are in a namespace of their own, which is removed at the end, also after
Ctrl-C; the next run removes that of a killed one. The pods have no rights and no
token. An image needs agnhost's netexec as its entry point, and curl; the default is
` + smoke.DefaultImage + `.`,
		Example: examples(
			"cluster check", "the kubeconfig's cluster",
			"cluster check -n win-1 --keep", "one node; leave the pods for a look",
			"cluster check --dry-run", "the objects that it would make",
			"cluster check --image mirror.example.com/agnhost:2.63.0", "without the internet",
		),
		Args: arguments(cobra.NoArgs),
		PreRunE: func(*cobra.Command, []string) error {
			_, err := o.complete(a)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runClusterCheck(cmd.Context(), o) },
	})
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.image, "image", "", "`image` of the Windows pods (default agnhost)")
	flags.StringVar(&o.linuxImage, "linux-image", "", "`image` of the server on Linux (default that of --image)")
	flags.DurationVar(&o.wait, waitTimeout, smoke.DefaultWait, "how long the start of each pod may take")
	flags.BoolVar(&o.keep, "keep", false, "keep the namespace with the pods")
	return cmd
}

func (a *app) runClusterCheck(ctx context.Context, o *clusterCheckOptions) error {
	options, err := o.complete(a)
	if err != nil {
		return err
	}
	c, err := a.checkedCluster(ctx, o)
	if err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	if a.global.dryRun {
		plan, err := smoke.NewPlan(ctx, c, options)
		if err != nil {
			return unreachable(explain(ctx, err))
		}
		return a.print(plan, plan.WriteText)
	}
	story := a.newStory()
	options.Reporter = func(node string) ui.Reporter { return story.Node(node) }
	report, err := smoke.Run(ctx, c, options)
	story.End()
	var failed *smoke.FailedError
	if err != nil && !errors.As(err, &failed) && len(report.Nodes) == 0 {
		return unreachable(explain(ctx, err))
	}
	printed := a.print(report, report.WriteText)
	if failed != nil && err == error(failed) { // the table already shows the failures
		err = &exitError{code: exitFinding}
	}
	return errors.Join(printed, unreachable(explain(ctx, err)))
}

// complete checks the flags without contacting anything.
func (o *clusterCheckOptions) complete(a *app) (smoke.Options, error) {
	options := smoke.Options{Nodes: a.global.nodes, Image: o.image, LinuxImage: o.linuxImage, Wait: o.wait,
		Keep: o.keep}
	if options.LinuxImage == "" {
		options.LinuxImage = o.image
	}
	if err := a.global.validate(); err != nil {
		return options, err
	}
	if o.wait <= 0 {
		return options, usagef("--%s %s: use a positive time, such as 10m", waitTimeout, o.wait)
	}
	if err := errors.Join(checkImage("image", o.image), checkImage("linux-image", o.linuxImage)); err != nil {
		return options, err
	}
	selector, err := labels.Parse(a.global.selector)
	if err != nil {
		return options, usagef("-l %s: %v; write labels as in pool=a,!gpu", a.global.selector, err)
	}
	options.Selector = selector
	return options, nil
}

// checkImage rejects the value of a flag that cannot be the name of an image.
func checkImage(flag, image string) error {
	if strings.ContainsAny(image, " \t\n") || strings.HasPrefix(image, "-") || strings.Contains(image, "://") {
		return usagef("--%s %q: write the name of an image, such as %s", flag, image, smoke.DefaultImage)
	}
	return nil
}

// checkedCluster returns the cluster of the document if only -c names a cluster. In any other case,
// it returns the cluster of the kubeconfig.
func (a *app) checkedCluster(ctx context.Context, o *clusterCheckOptions) (*cluster.Cluster, error) {
	if o.cluster.named() || len(a.global.config) == 0 {
		return o.cluster.open()
	}
	doc, err := a.clusterDocument()
	if err != nil {
		return nil, err
	}
	return a.openDocument(ctx, doc)
}

// unreachable adds the exit code for an unreachable node to err if the API server cannot be reached
// or rejects the user, or if there are no credentials to ask it with. It returns any other error unchanged.
func unreachable(err error) error {
	var (
		away     *cluster.UnreachableError
		stranger *cluster.UnauthorizedError
		plugin   *cluster.CredentialError
	)
	if errors.As(err, &away) || errors.As(err, &stranger) || errors.As(err, &plugin) {
		return &exitError{code: exitUnreachable, err: err}
	}
	return err
}

// completeWindowsNodes completes the names of the cluster's Windows nodes.
func (a *app) completeWindowsNodes(cmd *cobra.Command, toComplete string) []string {
	file, err := cmd.Flags().GetString("kubeconfig")
	if err != nil {
		return nil
	}
	name, err := cmd.Flags().GetString("context")
	if err != nil {
		return nil
	}
	c, err := (&clusterOptions{kubeconfig: file, context: name, noStdin: true}).open()
	if err != nil {
		return nil
	}
	nodes, err := askedInTime(cmd, c.WindowsNodes)
	if err != nil {
		return nil
	}
	return beginningWith(nodes, toComplete)
}
