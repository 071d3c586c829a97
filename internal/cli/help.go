package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/swdt-dev/swdt/internal/ui"
)

// usesNodes marks the commands that reach nodes. Only their help shows the global
// flags that select and reach nodes.
const usesNodes = "swdt-uses-nodes"

func forNodes(cmd *cobra.Command) *cobra.Command { return annotate(cmd, usesNodes) }

// annotate marks a command.
func annotate(cmd *cobra.Command, mark string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[mark] = "true"
	return cmd
}

// usesDocument marks the commands whose --config names the document of a cluster.
const usesDocument = "swdt-uses-document"

func forDocument(cmd *cobra.Command) *cobra.Command { return annotate(cmd, usesDocument) }

// examples formats examples: pairs alternates the arguments of a command and their description.
func examples(pairs ...string) string {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		width = max(width, len(pairs[i]))
	}
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		line := fmt.Sprintf("  %s %-*s", programMark, width, pairs[i])
		if pairs[i+1] != "" {
			line += "  # " + pairs[i+1]
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// programMark stands for swdt, or kubectl swdt, in examples.
const programMark = "@swdt"

// exampleOf returns the examples of a command, with the name by which the user calls swdt.
func exampleOf(cmd *cobra.Command) string {
	return ofPlugin(cmd, strings.ReplaceAll(cmd.Example, programMark, cmd.Root().CommandPath()))
}

// addHelp makes swdt write the help without cobra's templates, which take their functions from a
// global table.
func (a *app) addHelp(root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd))
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		about := cmd.Long
		if about == "" {
			about = cmd.Short
		}
		// If stdout is closed, there is no place to report the error.
		_ = a.paged(func(out io.Writer) *ui.Page { return ui.NewPage(out, false) }, func(p *ui.Page) error {
			_, err := io.WriteString(p, prose(strings.TrimSpace(about))+"\n\n"+usage(cmd))
			return err
		})
	})
	root.SetHelpCommand(helpCommand(root))
}

func usage(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND [flags]\n", cmd.CommandPath())
	} else {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAlso called:\n  %s\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", exampleOf(cmd))
	}
	writeCommands(&b, cmd)
	writeFlags(&b, cmd)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n`%s COMMAND --help` prints the help of a command", cmd.CommandPath())
		if !cmd.HasParent() {
			fmt.Fprintf(&b, ",\n`%s help exit-codes` what the exit codes mean", cmd.CommandPath())
		}
		b.WriteString(".\n")
	}
	if cmd.Annotations[usesNodes] != "" || !cmd.HasParent() {
		fmt.Fprintf(&b, "\n`%s options` lists the flags of every command, such as -c, %s and -o.\n",
			cmd.Root().CommandPath(), nodeFlagOf(cmd))
	}
	return b.String()
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, group := range groups {
		fmt.Fprintf(b, "\n%s\n", group.Title)
		for _, child := range inReadingOrder(cmd.Commands()) {
			if child.GroupID == group.ID && (child.IsAvailableCommand() || child.Name() == "help") {
				fmt.Fprintf(b, "  %-*s  %s\n", child.NamePadding(), child.Name(), child.Short)
			}
		}
	}
}

// position is the annotation with a command's place among its siblings, since cobra
// sorts them by name.
const position = "position"

// addInOrder adds commands in the order in which a new user needs them.
func addInOrder(parent *cobra.Command, children ...*cobra.Command) {
	for _, child := range children {
		if child.Annotations == nil {
			child.Annotations = map[string]string{}
		}
		child.Annotations[position] = fmt.Sprintf("%03d", len(parent.Commands()))
		parent.AddCommand(child)
	}
}

// inReadingOrder sorts commands by the order in which they were added; cobra's own
// help comes last.
func inReadingOrder(commands []*cobra.Command) []*cobra.Command {
	place := func(c *cobra.Command) string { return cmp.Or(c.Annotations[position], "last") }
	return slices.SortedStableFunc(slices.Values(commands), func(a, b *cobra.Command) int {
		return strings.Compare(place(a), place(b))
	})
}

func writeFlags(b *strings.Builder, cmd *cobra.Command) {
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	flags.SortFlags = false
	flags.AddFlagSet(cmd.LocalNonPersistentFlags())
	if cmd.Annotations[dryRunnable] != "" {
		flags.AddFlag(cmd.Root().PersistentFlags().Lookup(dryRunFlag))
	}
	if flags.HasAvailableFlags() {
		fmt.Fprintf(b, "\nFlags:\n%s\n", strings.TrimRight(flags.FlagUsagesWrapped(helpWidth), "\n "))
	}
}

// helpWidth is the width of a terminal on which help must fit.
const helpWidth = 80

// optionsCommand lists the global flags, so that the help of other commands need not list them.
func optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that every command has",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := cmd.Root().PersistentFlags().FlagUsagesWrapped(helpWidth)
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "These flags may be written before or after any command:\n%s\n",
				strings.TrimRight(flags, "\n "))
			return err
		},
	}
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | exit-codes]",
		Short: "Print the help of a command, or the exit codes",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string,
			cobra.ShellCompDirective) {
			parent, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, child := range parent.Commands() {
				if child.IsAvailableCommand() && strings.HasPrefix(child.Name(), toComplete) {
					names = append(names, child.Name()+"\t"+child.Short)
				}
			}
			if parent == root && strings.HasPrefix("exit-codes", toComplete) {
				names = append(names, "exit-codes\twhat the exit codes mean")
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "exit-codes" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), exitCodesHelp)
				return err
			}
			found, rest, err := root.Find(args)
			if err != nil {
				return noArguments(root, args)
			}
			if len(rest) > 0 {
				return noArguments(found, rest)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}
