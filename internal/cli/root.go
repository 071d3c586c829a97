package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const pluginPrefix = "kubectl-"

func (a *app) rootCommand() *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "swdt",
		Short: "Set up Windows nodes, push binaries to them, and inspect them",
		Long: `swdt is the daily tool of people who develop and run Kubernetes on Windows
nodes. Over one SSH connection it sets up a node, pushes the kubelet.exe or
containerd.exe that you have just built, restarts the services, and puts the old
binaries back if the new ones do not come up.`,
		Example: examples(
			"config init --write", "write swdt.yaml, a commented node file to start from",
			"setup", "configure Windows as spec.setup says",
			"push", "push binaries, restart, roll back if they fail",
			"status", "what runs on the node now",
			"sandbox up", "a stand-in for a Windows node",
		),
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return a.runVersion()
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.invoked = cmd
			if err := a.printRBAC(); err != nil {
				return err
			}
			a.warnOfOldSpellings()
			return errors.Join(a.chooseResult(cmd), a.checkDryRun(cmd), a.checkContext(cmd))
		},
		ValidArgsFunction: completeOtherNames,
		SilenceErrors:     true,
		SilenceUsage:      true,
	}
	if a.plugin() {
		root.Long = pluginLong
		root.Example = examples(
			"status win-1", "what runs on a node of the current kubeconfig",
			"doctor win-1", "what is wrong with it",
			"logs node/win-1 kubelet -f", "follow a log",
			"shell win-1", "a shell, without SSH",
			"push ./kubelet.exe --to win-1", "push a binary, restart, roll back if it fails",
		)
	}
	root.Flags().BoolVar(&version, "version", false, "print the version, as the command version does")
	if name := displayName(a.env.Program); name != root.Use {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	}
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.Err)
	root.SetFlagErrorFunc(a.flagError)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	a.global.addFlags(root.PersistentFlags(), a.nodeShort())
	a.completeGlobalFlags(root)

	groups := a.taskGroups()
	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, command := range group.commands {
			command.GroupID = group.title
		}
		addInOrder(root, group.commands...)
	}
	root.CompletionOptions.DisableDefaultCmd = true
	a.addHelp(root)
	root.SetHelpCommandGroupID(groups[len(groups)-1].title)
	a.addFormerFlags(root)
	a.addSortBy(root)
	a.addFilename(root)
	completeFileFlags(root)
	root.SetGlobalNormalizationFunc(toIsNode)
	return root
}

// taskGroup has the commands for one kind of task.
type taskGroup struct {
	title    string
	commands []*cobra.Command
}

// taskGroups returns all commands in the order of the help: groups and commands that a new user needs come first.
func (a *app) taskGroups() []taskGroup {
	return []taskGroup{
		{"Start", []*cobra.Command{a.sandboxCommand(), a.setupCommand(), a.upCommand(), a.downCommand()}},
		{"Push", []*cobra.Command{a.pushCommand(), a.rollbackCommand(), a.historyCommand(), a.restartCommand(), a.kubeletCommand(),
			a.kubeProxyCommand()}},
		{"Look", []*cobra.Command{a.statusCommand(), a.logsCommand(), a.eventsCommand(), a.doctorCommand(), a.psCommand(), a.topCommand(), a.servicesCommand(),
			a.execCommand(), a.shellCommand(), a.powershellCommand(), a.cpCommand(), a.forwardCommand(), a.rdpCommand(), a.attachCommand(), a.captureCommand(), a.hnsCommand(),
			a.hcsCommand(), a.criCommand(), a.statsCommand(), a.traceCommand(), a.diagCommand()}},
		{"Nodes and clusters", []*cobra.Command{a.joinCommand(), a.upgradeCommand(), a.resetCommand(), a.clusterCommand(),
			a.networkCommand(), a.vmCommand(), a.imageCommand(), a.lintCommand()}},
		{"Prove", []*cobra.Command{a.e2eCommand(), a.readinessCommand(), a.netpolCommand(), a.scaleCommand(),
			a.selftestCommand()}},
		{"Fleet", []*cobra.Command{a.fleetCommand()}},
		{"This machine", []*cobra.Command{a.configCommand(), optionsCommand(), a.versionCommand(), a.completionCommand(),
			a.debugCommand()}},
	}
}

// displayName returns the command as the user typed it: kubectl runs a file named
// kubectl-swdt for "kubectl swdt".
func displayName(program string) string {
	name := strings.TrimSuffix(filepath.Base(strings.ReplaceAll(program, `\`, "/")), ".exe")
	if rest, ok := strings.CutPrefix(name, pluginPrefix); ok {
		return "kubectl " + strings.ReplaceAll(rest, "_", "-")
	}
	return "swdt"
}

// group returns a command that only has subcommands.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addInOrder(cmd, children...)
	return cmd
}

// flagNames returns the names of the flags of a command and of all its parents, without hidden
// flags.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	for _, set := range []interface{ VisitAll(func(*flag)) }{cmd.LocalFlags(), cmd.InheritedFlags()} {
		set.VisitAll(func(f *flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}
