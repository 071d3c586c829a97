package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const (
	groupNode    = "node"
	groupInside  = "inside"
	groupAround  = "around"
	pluginPrefix = "kubectl-"
)

func (a *app) rootCommand() *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "swdt",
		Short: "The inner loop for people who develop Kubernetes on Windows nodes",
		Long: `swdt is the inner loop for people who develop Kubernetes on Windows nodes. Over
one SSH connection it sets a node up, pushes the kubelet.exe or containerd.exe
that you have just built, restarts the services, and takes it all back if the
new one does not come up.`,
		Example: examples(
			"config init > swdt.yaml", "a commented node file to start from",
			"setup", "bring the node to what the file's setup says",
			"kubernetes", "push what you built, restart, roll back if it fails",
			"status", "what runs there now",
			"sandbox up", "no Windows at hand? a node to try everything on",
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
			return errors.Join(a.chooseFormat(cmd), a.checkDryRun(cmd))
		},
		SilenceErrors: true,
		SilenceUsage:  true,
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
	a.global.addFlags(root.PersistentFlags())
	a.completeGlobalFlags(root)

	root.AddGroup(
		&cobra.Group{ID: groupNode, Title: "Bring a node where you want it:"},
		&cobra.Group{ID: groupInside, Title: "Work inside a node:"},
		&cobra.Group{ID: groupAround, Title: "Around it:"},
	)
	addTo(root, groupNode, a.setupCommand(), a.joinCommand(), a.kubernetesCommand(), a.rollbackCommand(), a.statusCommand(), a.resetCommand())
	addTo(root, groupInside, a.execCommand(), a.powershellCommand(), a.cpCommand(),
		a.logsCommand(), a.eventsCommand(), a.captureCommand(), a.psCommand(), a.hnsCommand(), a.hcsCommand(), a.criCommand(), a.statsCommand(), a.traceCommand(), a.diagCommand(), a.doctorCommand())
	addTo(root, groupAround, a.configCommand(), a.sandboxCommand(), a.versionCommand(), a.completionCommand(), optionsCommand(), a.debugCommand())
	root.CompletionOptions.DisableDefaultCmd = true
	addHelp(root)
	completeFileFlags(root)
	root.SetHelpCommandGroupID(groupAround)
	return root
}

func addTo(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, command := range commands {
		command.GroupID = group
	}
	addInOrder(root, commands...)
}

// displayName is what the user typed to get here: a file named kubectl-swdt is
// run by kubectl.
func displayName(program string) string {
	name := strings.TrimSuffix(filepath.Base(strings.ReplaceAll(program, `\`, "/")), ".exe")
	if rest, ok := strings.CutPrefix(name, pluginPrefix); ok {
		return "kubectl " + strings.ReplaceAll(rest, "_", "-")
	}
	return "swdt"
}

// group is a command that only holds others.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addInOrder(cmd, children...)
	return cmd
}

// flagNames of a command and all above it.
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
