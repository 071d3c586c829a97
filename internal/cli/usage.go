package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// noArguments rejects all arguments. It is for commands that only have subcommands.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args)
}

// unknownCommand returns the error for words of which the first is not a subcommand of cmd.
func unknownCommand(cmd *cobra.Command, words []string) error {
	word := words[0]
	what := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), word)
	if does := meant(words, commandNames(cmd)); does != "" && !cmd.HasParent() {
		return usagef("%s; use %s", what, remedy.Command(strings.Fields(does)...))
	}
	if similar := closestCommand(cmd, word); similar != "" {
		return usagef("%s; did you mean %s?", what, similar)
	}
	return usagef("%s; `%s --help` lists them", what, cmd.CommandPath())
}

// closestCommand returns the subcommand of cmd that the user most probably meant: one
// that has this name in other programs, or one with a similar spelling.
func closestCommand(cmd *cobra.Command, word string) string {
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() && slices.Contains(child.SuggestFor, strings.ToLower(word)) {
			return child.Name()
		}
	}
	return closest(word, commandNames(cmd))
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(append(names, child.Name()), child.Aliases...)
		}
	}
	return names
}

// arguments turns a wrong number of arguments into a usage error that names the
// mistake and shows the usage line.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		return usagef("%s; usage: %s", wrongArguments(cmd, args, check), cmd.UseLine())
	}
}

// wrongArguments describes what is wrong with arguments that check rejects.
func wrongArguments(cmd *cobra.Command, args []string, check cobra.PositionalArgs) string {
	accepts := func(n int) bool { return check(cmd, slices.Repeat([]string{anyArgument(cmd)}, n)) == nil }
	dash := slices.IndexFunc(args, func(arg string) bool { return len(arg) > 1 && arg[0] == '-' })
	least := 0
	for least < len(args)+maxArguments && !accepts(least) {
		least++
	}
	most := len(args)
	for most > 0 && !accepts(most) {
		most--
	}
	switch {
	case dash >= 0 && cmd.ArgsLenAtDash() >= 0:
		return fmt.Sprintf("%s follows --, after which %s takes no flags: write it before --", args[dash],
			cmd.CommandPath())
	case len(args) < least:
		return placeholder(cmd, len(args)) + " is missing"
	case accepts(len(args)):
		return fmt.Sprintf("%q is none of %s", wrongValue(cmd, args), strings.Join(cmd.ValidArgs, ", "))
	case cmd.HasAvailableSubCommands() && closestCommand(cmd, args[0]) != "":
		return fmt.Sprintf("%s has no command %q; did you mean %s?", cmd.CommandPath(), args[0],
			closestCommand(cmd, args[0]))
	case most == 0 && cmd.Annotations[usesNodes] != "":
		return fmt.Sprintf("%s takes no argument %q (%[3]s %[2]s chooses a node of that name)", cmd.CommandPath(), args[0],
			nodeFlagOf(cmd))
	}
	return fmt.Sprintf("%q is one argument too many", args[most])
}

// maxArguments is larger than the minimum number of arguments of any command.
const maxArguments = 4

// anyArgument returns a stand-in for an argument, when only the number of arguments
// matters.
func anyArgument(cmd *cobra.Command) string {
	if len(cmd.ValidArgs) > 0 {
		return cmd.ValidArgs[0]
	}
	return "x"
}

func wrongValue(cmd *cobra.Command, args []string) string {
	for _, arg := range args {
		if !slices.Contains(cmd.ValidArgs, arg) {
			return arg
		}
	}
	return ""
}

// placeholder returns the name of an argument in the command's usage line.
func placeholder(cmd *cobra.Command, index int) string {
	words := slices.DeleteFunc(strings.Fields(cmd.Use)[1:],
		func(word string) bool { return word == "[flags]" || word == "--" })
	if index < len(words) {
		return words[index]
	}
	return "an argument"
}

// flagError turns a flag that cannot be read into a usage error that shows the
// closest correct form.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	// If a command is misspelt, its parent parses its flags.
	if word := firstWord(cmd, a.args); word != "" && !slices.Contains(commandNames(cmd), word) &&
		cmd.HasAvailableSubCommands() && cmd.ValidateArgs([]string{word}) != nil {
		return unknownCommand(cmd, a.args[slices.Index(a.args, word):])
	}
	if long := a.longWithOneDash(cmd); long != "" {
		return usagef("-%s has one dash; did you mean --%s?", long, long)
	}
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		lists   = fmt.Sprintf("`%s --help` and `%s options` list the flags", cmd.CommandPath(),
			cmd.Root().CommandPath())
		longName string
	)
	switch {
	case errors.As(err, &unknown) && a.pluginFlagError(cmd, unknown) != nil:
		return a.pluginFlagError(cmd, unknown)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usagef("unknown flag -%s; %s", unknown.GetSpecifiedName(), lists)
	case errors.As(err, &unknown):
		longName = unknown.GetSpecifiedName()
		if similar := closest(longName, flagNames(cmd)); similar != "" {
			return usagef("unknown flag --%s; did you mean --%s?", longName, similar)
		}
		return usagef("unknown flag --%s; %s", longName, lists)
	case errors.As(err, &missing):
		value, _ := pflag.UnquoteUsage(missing.GetFlag())
		return usagef("--%s needs a value: --%[1]s %s", longAsTyped(missing), strings.ToUpper(value))
	case errors.As(err, &invalid):
		name, value := invalid.GetFlag().Name, invalid.GetValue()
		if is := typeHint(invalid.GetFlag().Value.Type()); is != "" {
			return usagef("--%s %q: %s", name, value, is)
		}
		return usagef("--%s %q: %v", name, value, errors.Unwrap(invalid))
	}
	return usagef("%v; %s", err, lists)
}

// longAsTyped returns the long name of a flag without a value: --to as it was typed, which is another name of --node.
func longAsTyped(missing *pflag.ValueRequiredError) string {
	if missing.GetSpecifiedShortnames() == "" {
		return missing.GetSpecifiedName()
	}
	return missing.GetFlag().Name
}

// firstWord returns the first of args, below cmd, that is neither a flag nor a flag's
// value. Behind a flag that cmd does not have it returns "", since the next word may be that
// flag's value.
func firstWord(cmd *cobra.Command, args []string) string {
	_, rest, err := cmd.Root().Find(args)
	if err != nil {
		return ""
	}
	for i := 0; i < len(rest); i++ {
		switch word := rest[i]; {
		case word == "--" || len(word) == 0:
			return ""
		case word[0] != '-':
			return word
		case flagAsTyped(cmd, word) == nil:
			return ""
		case takesNext(cmd, word):
			i++
		}
	}
	return ""
}

// takesNext reports whether a flag, as typed, has its value in the next argument.
func takesNext(cmd *cobra.Command, typed string) bool {
	f := flagAsTyped(cmd, typed)
	return f != nil && f.NoOptDefVal == "" && !strings.Contains(typed, "=")
}

// flagAsTyped returns the flag that is typed as --name, --name=value or -n, or nil if cmd does not have it. Of
// several short flags in one word it returns the last.
func flagAsTyped(cmd *cobra.Command, typed string) *flag {
	word, _, _ := strings.Cut(typed, "=")
	if name, long := strings.CutPrefix(word, "--"); long {
		return cmd.Flags().Lookup(name)
	}
	return cmd.Flags().ShorthandLookup(word[len(word)-1:])
}

// longWithOneDash returns the name of a long flag that was typed as -name, which pflag
// reads as -n with the value ame.
func (a *app) longWithOneDash(cmd *cobra.Command) string {
	for _, arg := range a.args {
		if arg == "--" {
			return ""
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if len(name) > 1 && arg[0] == '-' && arg[1] != '-' && slices.Contains(flagNames(cmd), name) {
			return name
		}
	}
	return ""
}

// typeHint returns the hint for a value that does not fit a flag's type, or "" if
// the type's own error is clear.
func typeHint(flagType string) string {
	switch flagType {
	case "duration":
		return "write a time with its unit, as in 30s or 5m"
	case "int", "int64", "uint", "uint16", "uint32":
		return "write a whole number"
	case "float64":
		return "write a number"
	case "bool":
		return "write true or false"
	}
	return ""
}

// dryRunnable marks the commands that support --dry-run.
const dryRunnable = "swdt-dry-run"

// canDryRun marks a command that shows with --dry-run what it would change.
func canDryRun(cmd *cobra.Command) *cobra.Command { return annotate(cmd, dryRunnable) }

// checkDryRun rejects --dry-run for a command that would ignore it: a user who relies
// on it must be able to trust that nothing changes.
func (a *app) checkDryRun(cmd *cobra.Command) error {
	if !a.global.dryRun || cmd.Annotations[dryRunnable] != "" {
		return nil
	}
	return usagef("%s has no --dry-run; %s have it", cmd.CommandPath(), strings.Join(dryRunnables(cmd.Root()), ", "))
}

func dryRunnables(cmd *cobra.Command) (paths []string) {
	if cmd.Annotations[dryRunnable] != "" && !cmd.Hidden {
		paths = append(paths, strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" "))
	}
	for _, child := range inReadingOrder(cmd.Commands()) {
		paths = append(paths, dryRunnables(child)...)
	}
	return paths
}
