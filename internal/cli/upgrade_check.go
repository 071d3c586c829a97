package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/cluster/upgradelive"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

type upgradeCheckOptions struct {
	cluster    clusterOptions
	kubernetes string
	containerd string
	windows    string
	files      []string
	bundles    []string
	failOn     string
	fix, yes   bool
	force      bool

	table  *kubesettings.Table
	target upgradecheck.Target
	names  map[string]string // of the nodes in the cluster, by those of their documents
}

func (a *app) upgradeCheckCommand() *cobra.Command {
	o := &upgradeCheckOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:   "check [flags]",
		Short: "Find what an upgrade of Kubernetes, containerd or Windows breaks",
		Long: `Reads the settings of kubelet, kube-proxy and containerd, and holds them against
what newer versions take: feature gates that are removed or locked, flags and
fields that are gone, configurations of containerd, versions that work together.
It changes nothing without --fix.

It reads a cluster: DaemonSets, their ConfigMaps, and the running configuration
of each Windows kubelet, with one request for each node. With node files or
--via kubernetes, it reads the nodes too: command lines of services, the scripts
that start them, configuration files. With -f it reads manifests, scripts and
configuration files of folders, and no cluster unless --kubeconfig names one.
With --bundle it reads the nodes in archives of "swdt diag" instead, and lists the
sources that an archive lacks.

With --fix it removes the settings with which a program of the new version would
end: gates, flags and fields. It shows the changes and asks first. Each node is a
transaction like that of "swdt kubelet config unset", with the health check and
the undo of a push. An object of the cluster (a ConfigMap, a DaemonSet) gets a
server-side apply of the changed fields, which the API server has tried before;
fields that other managers own are named, and taken with --force alone. The script
in an image stays as it is.

The tables of Kubernetes 1.33 to 1.38 are a part of swdt. The exit code is 5 if
a finding is as severe as --fail-on or worse.`,
		Example: examples(
			"upgrade check --kubeconfig admin.conf --kubernetes 1.38", "a cluster",
			"upgrade check -f ./manifests --kubernetes 1.38", "files, as in CI",
			"upgrade check --bundle win.tar.gz --kubernetes 1.38", "nodes as they were",
			"upgrade check --via kubernetes -l kubernetes.io/os=windows --kubernetes 1.38", "with the nodes' files",
			"upgrade check -c swdt.yaml --containerd 2.4 --windows ltsc2025", "",
			"upgrade check -c swdt.yaml --kubernetes 1.38 --fix", "remove what would break from the nodes",
			"upgrade check --kubeconfig admin.conf --kubernetes 1.38 --fix --dry-run", "show what would change in objects",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runUpgradeCheck(cmd.Context(), o) },
	}))
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.kubernetes, "kubernetes", "", "`version` of Kubernetes to upgrade to, such as 1.38")
	flags.StringVar(&o.containerd, "containerd", "", "`version` of containerd to upgrade to, such as 2.4")
	flags.StringVar(&o.windows, "windows", "", "`release` of Windows Server to upgrade to: ltsc2019, ltsc2022 or ltsc2025")
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "`file or folder` to read, several times for several; - for stdin")
	flags.StringSliceVar(&o.bundles, "bundle", nil, "`archive` of swdt diag whose nodes are read, several times for several")
	flags.StringVar(&o.failOn, "fail-on", string(finding.Error),
		"end with 5 for a finding this severe: error, warning, info or never")
	flags.BoolVar(&o.fix, "fix", false, "remove the settings with which a new program would end, after a question")
	flags.BoolVar(&o.force, "force", false, "take fields even if other managers own them")
	addYesFlag(cmd, &o.yes)
	must(cmd.MarkFlagFilename("filename"))
	must(cmd.MarkFlagFilename("bundle", "tar.gz"))
	must(cmd.RegisterFlagCompletionFunc("windows", cobra.FixedCompletions(upgradecheck.WindowsReleases(),
		cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failOns(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// complete checks the flags without contacting anything.
func (o *upgradeCheckOptions) complete(a *app) (err error) {
	if err := a.global.validate(); err != nil {
		return err
	}
	if o.kubernetes == "" && o.containerd == "" && o.windows == "" {
		return usagef("name what to upgrade to, with --kubernetes, --containerd or --windows")
	}
	if !slices.Contains(failOns(), o.failOn) {
		return usagef("--fail-on %s: use %s", o.failOn, strings.Join(failOns(), ", "))
	}
	switch {
	case a.global.dryRun && !o.fix:
		return usagef("--dry-run goes with --fix: without it, nothing is changed")
	case o.force && !o.fix:
		return usagef("--force goes with --fix: without it, nothing is changed")
	case o.yes && !o.fix:
		return usagef("--yes goes with --fix: without it, nothing is changed")
	}
	if o.fix && len(o.bundles) > 0 {
		return usagef("--fix changes nodes, and --bundle reads them as they were: leave one of them out")
	}
	if o.fix && len(o.files) > 0 && !o.cluster.named() && !a.namesNodeFiles() && a.global.via.text == "" {
		return usagef("--fix changes nodes and objects of a cluster, and -f reads files: name nodes with -c or --via kubernetes, or a " +
			"cluster with --kubeconfig")
	}
	if o.table, err = kubesettings.Load(); err != nil {
		return err
	}
	if o.target, err = upgradecheck.ParseTarget(o.table, o.kubernetes, o.containerd, o.windows); err != nil {
		return usagef("--%v", err)
	}
	return nil
}

func (a *app) runUpgradeCheck(ctx context.Context, o *upgradeCheckOptions) error {
	if err := o.complete(a); err != nil {
		return err
	}
	if o.fix {
		prompt := a.prompter(a.newStory())
		if err := canConfirm(prompt, o.yes || a.global.dryRun, "Remove settings from nodes and objects?"); err != nil {
			return err
		}
	}
	reader := upgradecheck.NewReader(o.table)
	if err := a.readTexts(reader, o.files, "-f: "); err != nil {
		return err
	}
	if len(reader.NodeFiles) > 0 {
		return usagef("-f reads manifests, and %s is a file of swdt: a node file is -c", reader.NodeFiles[0])
	}
	for _, file := range o.bundles {
		if err := a.readBundle(ctx, reader, file, o); err != nil {
			return err
		}
	}
	c, err := o.chooseCluster(a)
	if err != nil {
		return err
	}
	if c != nil {
		if err := a.readSettings(ctx, reader, c, o); err != nil {
			return err
		}
	}
	failed, err := a.readNodes(ctx, reader, o)
	if err != nil {
		return err
	}
	report := upgradecheck.NewReport(o.target, reader.Facts, upgradecheck.Check(o.table, o.target, reader.Facts))
	for i := range report.Findings {
		report.Findings[i].Remedy = a.remedies("", report.Findings[i].Remedy)
	}
	if o.fix {
		return a.fix(ctx, o, c, report, failed)
	}
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	if failed == nil && o.failOn != never && report.Has(finding.Severity(o.failOn)) {
		return &exitError{code: exitFinding}
	}
	return failed
}

// chooseCluster returns the cluster to read; nil if only files, or only nodes, are read.
func (o *upgradeCheckOptions) chooseCluster(a *app) (*cluster.Cluster, error) {
	switch {
	case o.cluster.named():
		return o.cluster.open()
	case len(o.files) > 0, len(o.bundles) > 0:
		return nil, nil
	case a.global.via.text != "":
		return a.viaCluster()
	case a.namesNodeFiles() && a.env.Getenv("KUBECONFIG") == "":
		return nil, nil
	}
	return o.cluster.open()
}

// readBundle reads the nodes of an archive of swdt diag.
func (a *app) readBundle(ctx context.Context, r *upgradecheck.Reader, file string, o *upgradeCheckOptions) error {
	bundle, err := diag.Open(file)
	if err != nil {
		return usagef("--bundle: %v", err)
	}
	return bundle.Settings(ctx, r, o.windows != "", o.table)
}

// readSettings reads the settings of a cluster.
func (a *app) readSettings(ctx context.Context, r *upgradecheck.Reader, c *cluster.Cluster, o *upgradeCheckOptions) error {
	options := upgradelive.Options{Workloads: o.windows != ""}
	if !a.namesNodeFiles() { // then names and labels are those of the node files
		options.Nodes = a.global.nodes
		selector, err := labels.Parse(a.global.selector)
		if err != nil {
			return usagef("-l %s: %v; write labels as in pool=a,!gpu", a.global.selector, err)
		}
		options.Selector = selector
	}
	bounded, cancel := a.global.bounded(ctx)
	defer cancel()
	err := upgradelive.Read(bounded, c, r, options)
	var none *upgradelive.NoSuchNodeError
	if errors.As(err, &none) {
		return usagef("%s: %v", a.nodesFlag(), err)
	}
	return unreachable(explain(bounded, err))
}

// readNodes reads the nodes of node files and of --via. failed are the nodes that could not be read.
func (a *app) readNodes(ctx context.Context, r *upgradecheck.Reader, o *upgradeCheckOptions) (failed, err error) {
	if !a.namesNodeFiles() && a.global.via.text == "" {
		return nil, nil
	}
	s, err := a.begin()
	if err != nil {
		return nil, err
	}
	s.quiet = true
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		progress ui.Reporter) (upgradecheck.Facts, error) {
		progress.Step("reading the node's settings")
		name := doc.Node.Spec.Kubernetes.Join.NodeName
		if a.global.via.text != "" {
			name = cmp.Or(name, n.Name)
		}
		return nodesettings.Read(ctx, n, nodesettings.Options{Name: name, Windows: o.windows != ""}, o.table)
	})
	o.names = map[string]string{}
	for _, result := range results {
		if len(result.Value.Nodes) > 0 {
			o.names[result.Name()] = result.Value.Nodes[0].Name
		}
		if result.Err != nil {
			result.Value.Nodes = []upgradecheck.Node{{Name: result.Name(), Result: upgradecheck.NodeFailed, Error: result.Err.Error(),
				Read: []string{}}}
		}
		r.Add(result.Value)
	}
	return fleet.Failures(results), nil
}
