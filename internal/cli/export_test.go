package cli

import "github.com/spf13/cobra"

// CommandsThatAsk returns the commands with --yes, by their names without swdt.
func CommandsThatAsk() (all []string) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Flags().Lookup(yesFlag) != nil && !cmd.Hidden { // a hidden one is a former name
			all = append(all, cmd.CommandPath()[len("swdt "):])
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	a := &app{env: Environment{}.complete()}
	walk(a.rootCommand())
	return all
}

// SplitAtCommas splits a value as -c does.
func SplitAtCommas(value string) []string { return splitAtCommas(value) }
