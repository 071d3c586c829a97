package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/settingchange"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) kubeletCommand() *cobra.Command {
	return group("kubelet", "Read and change the settings of kubelet on running nodes",
		a.settingsGroup(kubesettings.Kubelet, upgradecheck.FieldSetting),
		a.settingsGroup(kubesettings.Kubelet, upgradecheck.GateSetting))
}

func (a *app) kubeProxyCommand() *cobra.Command {
	return group("kube-proxy", "Read and change the settings of a kube-proxy that is a service",
		a.settingsGroup(kubesettings.KubeProxy, upgradecheck.FieldSetting),
		a.settingsGroup(kubesettings.KubeProxy, upgradecheck.GateSetting))
}

// settingsOf are the settings that a group of commands is about.
type settingsOf struct {
	program kubesettings.Program
	kind    upgradecheck.Kind
}

func (o settingsOf) gates() bool { return o.kind == upgradecheck.GateSetting }

// words returns the command's name, and what it is about.
func (o settingsOf) words() (name, what string) {
	if o.gates() {
		return "features", "feature gates"
	}
	return "config", "configuration"
}

func (a *app) settingsGroup(p kubesettings.Program, kind upgradecheck.Kind) *cobra.Command {
	o := settingsOf{p, kind}
	name, what := o.words()
	commands := []*cobra.Command{a.settingsGet(o), a.settingsSet(o), a.settingsUnset(o), a.settingsDiff(o)}
	if !o.gates() {
		commands = append(commands, a.settingsUndo(o))
	}
	return group(name, fmt.Sprintf("Read and change the %s of %s", what, p), commands...)
}

// example returns a setting to set, and its name.
func (o settingsOf) example() (set, name string) {
	switch {
	case o.gates() && o.program == kubesettings.Kubelet:
		return "PodAndContainerStatsFromCRI=true", "PodAndContainerStatsFromCRI"
	case o.gates():
		return "WinDSR=true", "WinDSR"
	case o.program == kubesettings.Kubelet:
		return "maxPods=40", "maxPods"
	}
	return "winkernel.enableDSR=true", "winkernel.enableDSR"
}

const whereSettingsAre = `A setting may be on the command line of the service, in the script that starts
the program, in kubeadm-flags.env, in the configuration file or in a drop-in.`

func (a *app) settingsGet(o settingsOf) *cobra.Command {
	_, what := o.words()
	_, name := o.example()
	long := fmt.Sprintf("Lists the %s of %s, with the place of each on the node. ", what, o.program)
	short := fmt.Sprintf("List the fields of %s's configuration that are set, and where", o.program)
	if o.gates() {
		long += "Without\nNAMEs it lists all gates of the version that runs there, with their defaults."
		short = fmt.Sprintf("List the feature gates of %s, and where they are set", o.program)
	} else {
		long += "Without\nNAMEs it lists all fields that are set."
	}
	return forNodes(&cobra.Command{
		Use: "get [NAME…]", Short: short,
		Long: long + "\n\n" + whereSettingsAre + `
The first place of WHERE counts: flags win over files. It changes nothing.`,
		Example:           examples(o.path("get"), "", o.path("get "+name+" -o json"), "for scripts"),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: o.completeNames(""),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.listSettings(cmd.Context(), o, func(_ context.Context, _ *node.Node, s *settingchange.Settings) (
				settingchange.Listing, error) {
				if o.gates() {
					return s.Gates(names)
				}
				return s.Fields(names)
			})
		},
	})
}

func (a *app) settingsDiff(o settingsOf) *cobra.Command {
	short := "Show the fields that the last change has changed"
	long := `Compares the configuration files with those that the node keeps from before the
last change, which may be one of ` + "`" + o.path("set") + "`" + `. It changes nothing.`
	if o.gates() {
		short = "Show the feature gates that differ from the version's defaults"
		long = `Lists the feature gates whose value is not the default of the version that runs
there, and those that the version does not take. It changes nothing.`
	}
	return forNodes(&cobra.Command{
		Use: "diff", Short: short, Long: long,
		Example: examples(o.path("diff"), ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listSettings(cmd.Context(), o, func(ctx context.Context, n *node.Node, s *settingchange.Settings) (
				settingchange.Listing, error) {
				if o.gates() {
					return s.ChangedGates()
				}
				return s.ChangedFields(ctx, n)
			})
		},
	})
}

func (a *app) settingsSet(o settingsOf) *cobra.Command {
	_, what := o.words()
	set, _ := o.example()
	long := fmt.Sprintf("Changes the %s of %s on running nodes.\n\n", what, o.program) + whereSettingsAre + `
It is changed where it is; a new one goes into the configuration file. Comments,
order and encoding of a file stay.

Before anything is touched, the setting is held against the version that runs
there: an unknown name, a locked gate or a value of a wrong type is refused. Then
file and command line change in one transaction, as in a push: the service
restarts, and if it does not become healthy, the node puts everything back and
the exit code is 4. --dry-run shows the change alone.`
	if !o.gates() {
		long += `

VALUE is a text or YAML, as in clusterDNS=[10.96.0.10].`
	}
	return canDryRun(forNodes(&cobra.Command{
		Use: "set NAME=VALUE…", Short: fmt.Sprintf("Change the %s of %s in one transaction", what, o.program), Long: long,
		Example: examples(o.path("set "+set), "", o.path("set "+set+" --to win-1"), "without a node file",
			o.path("set "+set+" --dry-run"), "what would change"),
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: o.completeNames("=true"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wishes, err := o.wishes(args)
			if err != nil {
				return err
			}
			return a.changeSettings(cmd.Context(), o, "set", func(_ context.Context, _ *node.Node, s *settingchange.Settings) (
				*settingchange.Plan, error) {
				return s.Plan(wishes)
			})
		},
	}))
}

func (a *app) settingsUnset(o settingsOf) *cobra.Command {
	_, what := o.words()
	_, name := o.example()
	return canDryRun(forNodes(&cobra.Command{
		Use: "unset NAME…", Short: fmt.Sprintf("Remove settings from the %s of %s in one transaction", what, o.program),
		Long: `Removes settings wherever they are made: flags, files and drop-ins. The program
then has its default. The change is one transaction, as that of ` + "`" + o.path("set") + "`" + `.
A setting that the version does not know can be removed, too.`,
		Example:           examples(o.path("unset "+name), "", o.path("unset "+name+" --dry-run"), "what would change"),
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: o.completeNames(""),
		RunE: func(cmd *cobra.Command, names []string) error {
			var wishes []settingchange.Wish
			for _, name := range names {
				wishes = append(wishes, settingchange.Wish{Kind: o.kind, Name: name, Unset: true})
			}
			return a.changeSettings(cmd.Context(), o, "unset", func(_ context.Context, _ *node.Node, s *settingchange.Settings) (
				*settingchange.Plan, error) {
				return s.Plan(wishes)
			})
		},
	}))
}

func (a *app) settingsUndo(o settingsOf) *cobra.Command {
	return canDryRun(forNodes(&cobra.Command{
		Use: "undo", Short: fmt.Sprintf("Put the files of %s back that the last change replaced", o.program),
		Long: `Puts back the files that the last change of settings has replaced, byte for byte,
in one transaction as that of ` + "`" + o.path("set") + "`" + `. The node then keeps the present files, so
that a second undo puts these back. A command line is changed back with set or
unset.`,
		Example: examples(o.path("undo"), "", o.path("undo --dry-run"), "which files"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.changeSettings(cmd.Context(), o, "undo", func(ctx context.Context, n *node.Node, s *settingchange.Settings) (
				*settingchange.Plan, error) {
				return s.Undo(ctx, n)
			})
		},
	}))
}

// path returns the words of a command of the group, for examples and texts.
func (o settingsOf) path(rest string) string {
	name, _ := o.words()
	return string(o.program) + " " + name + " " + rest
}

// wishes reads NAME=VALUE. Gates may also be joined by commas, as in --feature-gates.
func (o settingsOf) wishes(args []string) (all []settingchange.Wish, err error) {
	if o.gates() {
		args = strings.Split(strings.Join(args, ","), ",")
	}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case !ok || name == "":
			return nil, usagef("%s: write NAME=VALUE", arg)
		case o.gates() && value != "true" && value != "false":
			return nil, usagef("%s: a feature gate is true or false", arg)
		}
		if slices.ContainsFunc(all, func(w settingchange.Wish) bool { return w.Name == name }) {
			return nil, usagef("%s is there twice", name)
		}
		all = append(all, settingchange.Wish{Kind: o.kind, Name: name, Value: value})
	}
	return all, nil
}

// completeNames completes the names of gates that any version has, with a text behind each.
func (o settingsOf) completeNames(behind string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		table, err := kubesettings.Load()
		if err != nil || !o.gates() {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := table.Gates()
		for i := range names {
			names[i] += behind
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// listSettings prints settings of nodes.
func (a *app) listSettings(ctx context.Context, o settingsOf,
	list func(context.Context, *node.Node, *settingchange.Settings) (settingchange.Listing, error)) error {
	table, err := kubesettings.Load()
	if err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document, _ ui.Reporter) (
		settingchange.Listing, error) {
		is, err := settingchange.Read(ctx, n, o.program, table)
		if err != nil {
			return settingchange.Listing{}, err
		}
		return list(ctx, n, is)
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := settingchange.NewReport(results)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return failed
}

// changeSettings changes settings of nodes, and prints the result as that of a push.
func (a *app) changeSettings(ctx context.Context, o settingsOf, verb string,
	change func(context.Context, *node.Node, *settingchange.Settings) (*settingchange.Plan, error)) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	options := push.Options{DryRun: a.global.dryRun, Holder: plan.Holder(o.path(verb))}
	return a.printDeploy(onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (
		push.NodeResult, error) {
		return a.changeNode(ctx, n, doc, o, options, r, change)
	}))
}

// changeNode changes settings of a program on one node.
func (a *app) changeNode(ctx context.Context, n *node.Node, doc config.Document, o settingsOf, options push.Options, r ui.Reporter,
	change func(context.Context, *node.Node, *settingchange.Settings) (*settingchange.Plan, error)) (push.NodeResult, error) {
	table, err := kubesettings.Load()
	if err != nil {
		return push.NodeResult{}, err
	}
	// Read names the place of the settings of a program that is no service, and Place does not.
	if _, err := settingchange.Read(ctx, n, o.program, table); err != nil {
		return push.NodeResult{}, err
	}
	documents, open := withServices([]config.Document{doc}, []string{string(o.program)})
	doc, err = push.Place(ctx, n, documents[0], open[doc.Node.Metadata.Name], r)
	if err == nil {
		err = push.Settle(ctx, n, options, r)
	}
	if err != nil {
		return push.NodeResult{}, err
	}
	is, err := settingchange.Read(ctx, n, o.program, table)
	if err != nil {
		return push.NodeResult{}, err
	}
	changes, err := change(ctx, n, is)
	if err != nil {
		return push.NodeResult{}, err
	}
	return changes.Apply(ctx, n, doc, options, r)
}
