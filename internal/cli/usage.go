package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noArguments is for the commands that only hold others.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand is the error for a word that is no command of cmd.
func unknownCommand(cmd *cobra.Command, word string) error {
	what := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), word)
	if similar := closestCommand(cmd, word); similar != "" {
		return usagef("%s; did you mean %s?", what, similar)
	}
	return usagef("%s; `%s --help` lists them", what, cmd.CommandPath())
}

// closestCommand is the command of cmd that a person most probably meant: one
// that other programs call so, or one that is spelt nearly so.
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

// arguments makes a wrong number of arguments a usage error that says what is
// wrong and shows the usage line.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		return usagef("%s; usage: %s", wrongArguments(cmd, args, check), cmd.UseLine())
	}
}

// wrongArguments says what is wrong with arguments that check refuses.
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
		return fmt.Sprintf("%s stands after --, where %s takes no flags: write it before --", args[dash], cmd.CommandPath())
	case len(args) < least:
		return placeholder(cmd, len(args)) + " is missing"
	case accepts(len(args)):
		return fmt.Sprintf("%q is none of %s", wrongValue(cmd, args), strings.Join(cmd.ValidArgs, ", "))
	case cmd.HasAvailableSubCommands() && closestCommand(cmd, args[0]) != "":
		return fmt.Sprintf("%s has no command %q; did you mean %s?", cmd.CommandPath(), args[0], closestCommand(cmd, args[0]))
	case most == 0 && cmd.Annotations[usesNodes] != "":
		return fmt.Sprintf("%s takes no argument %q (-n %[2]s chooses a node of that name)", cmd.CommandPath(), args[0])
	}
	return fmt.Sprintf("%q is one argument too many", args[most])
}

// maxArguments is more than any command needs at least.
const maxArguments = 4

// anyArgument is an argument of which only the place counts.
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

// placeholder is the name of an argument in the command's usage line.
func placeholder(cmd *cobra.Command, index int) string {
	words := slices.DeleteFunc(strings.Fields(cmd.Use)[1:], func(word string) bool { return word == "[flags]" || word == "--" })
	if index < len(words) {
		return words[index]
	}
	return "an argument"
}

// flagError makes a flag that cannot be read a usage error with the nearest
// right form.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	// A command that is misspelt leaves its flags to the one above it.
	if word := firstWord(cmd, a.args); word != "" && !slices.Contains(commandNames(cmd), word) && cmd.HasAvailableSubCommands() && cmd.ValidateArgs([]string{word}) != nil {
		return unknownCommand(cmd, word)
	}
	if long := a.longWithOneDash(cmd); long != "" {
		return usagef("-%s has one dash; did you mean --%s?", long, long)
	}
	var (
		unknown  *pflag.NotExistError
		missing  *pflag.ValueRequiredError
		invalid  *pflag.InvalidValueError
		lists    = fmt.Sprintf("`%s --help` and `%s options` list the flags", cmd.CommandPath(), cmd.Root().CommandPath())
		longName string
	)
	switch {
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
		return usagef("--%s needs a value: --%[1]s %s", missing.GetFlag().Name, strings.ToUpper(value))
	case errors.As(err, &invalid):
		if is := whatIsWrong(invalid.GetFlag().Value.Type()); is != "" {
			return usagef("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), is)
		}
	}
	return usagef("%v; %s", err, lists)
}

// firstWord is the first of args, below cmd, that is neither a flag nor a flag's
// value.
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
		case takesNext(cmd, word):
			i++
		}
	}
	return ""
}

// takesNext reports whether a flag as it was typed has its value in the next
// argument.
func takesNext(cmd *cobra.Command, typed string) bool {
	name, long := strings.CutPrefix(typed, "--")
	if strings.Contains(name, "=") {
		return false
	}
	f := cmd.Flags().Lookup(name)
	if !long {
		f = cmd.Flags().ShorthandLookup(typed[len(typed)-1:])
	}
	return f != nil && f.NoOptDefVal == ""
}

// longWithOneDash is the name of a long flag that was typed as -name, which pflag
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

// whatIsWrong is said of a value that is none of a flag's type; empty: the type
// says it itself.
func whatIsWrong(flagType string) string {
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

// dryRunnable marks the commands that --dry-run means something to.
const dryRunnable = "swdt-dry-run"

// canDryRun marks a command that shows with --dry-run what it would change.
func canDryRun(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[dryRunnable] = "true"
	return cmd
}

// checkDryRun refuses --dry-run where a command would ignore it: who believes
// that nothing happens must be right.
func (a *app) checkDryRun(cmd *cobra.Command) error {
	if !a.global.dryRun || cmd.Annotations[dryRunnable] != "" {
		return nil
	}
	return usagef("%s has no --dry-run; %s have it", cmd.CommandPath(), strings.Join(dryRunnables(cmd.Root()), ", "))
}

func dryRunnables(cmd *cobra.Command) (paths []string) {
	if cmd.Annotations[dryRunnable] != "" {
		paths = append(paths, strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" "))
	}
	for _, child := range inReadingOrder(cmd.Commands()) {
		paths = append(paths, dryRunnables(child)...)
	}
	return paths
}
