package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/swdt-dev/swdt/internal/config"
)

// As a plugin of kubectl, swdt reads -n as kubectl does: as the namespace. --node then has no short form. A
// command without namespaces refuses -n, so that no command works on other nodes than the user means.

const nodeFlag, namespaceFlag, pluginShort = "node", "namespace", "n"

// toFlag is another name of --node.
const toFlag = "to"

// nodesFlag returns the flag that names the nodes, with dashes, as the user typed it; --node if none does.
func (a *app) nodesFlag() string {
	if a.nodesFrom != "" {
		return "--" + a.nodesFrom
	}
	own := a.args[:ownArguments(a.args)]
	if slices.ContainsFunc(own, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == "--"+toFlag
	}) {
		return "--" + toFlag
	}
	return "--" + nodeFlag
}

// asTyped returns an error about --node, of a package that knows one name of the flag alone, with the name that the
// user typed.
func (a *app) asTyped(err error) error {
	wrong, ok := errors.AsType[*config.Error](err)
	if !ok || !slices.ContainsFunc(wrong.Problems, ofNodes) {
		return err
	}
	problems := slices.Clone(wrong.Problems)
	for i, p := range problems {
		if ofNodes(p) {
			problems[i].Field = a.nodesFlag()
		}
	}
	return &config.Error{Problems: problems}
}

// ofNodes reports whether a problem is one of the flag --node.
func ofNodes(p config.Problem) bool { return p.Field == "--"+nodeFlag }

// plugin reports whether kubectl runs this swdt, as `kubectl swdt`.
func (a *app) plugin() bool { return displayName(a.env.Program) != "swdt" }

// nodeShort returns the short form of --node; "": it has none.
func (a *app) nodeShort() string {
	if a.plugin() {
		return ""
	}
	return "n"
}

// addNamespaceFlag adds --namespace to a command that lists pods.
func (a *app) addNamespaceFlag(cmd *cobra.Command, value *string) {
	short := ""
	if a.plugin() {
		short = pluginShort
	}
	cmd.Flags().StringVarP(value, namespaceFlag, short, "", "only pods of this `namespace`")
	must(cmd.RegisterFlagCompletionFunc(namespaceFlag, a.completeNamespaces))
}

// withoutNodeShort replaces -n, which swdt's own texts have for --node, in the arguments of a proposed command.
func (a *app) withoutNodeShort(line []string) []string {
	if !a.plugin() {
		return line
	}
	line = slices.Clone(line)
	for i := range line[:ownArguments(line)] {
		if line[i] == "-n" {
			line[i] = "--" + nodeFlag
		}
	}
	return line
}

// pluginFlagError returns the error for a flag of kubectl that swdt does not have, and nil for any other flag.
func (a *app) pluginFlagError(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := unknown.GetSpecifiedName()
	switch {
	case !a.plugin():
		return nil
	case unknown.GetSpecifiedShortnames() != "" && name == pluginShort:
		return usagef("-n is the namespace in kubectl, and %s is about nodes: --node NAME chooses nodes",
			cmd.CommandPath())
	case slices.Contains(contextFlags(), name):
		return usagef("--%s of kubectl does not exist here: `kubectl config set-context` makes a context with it, "+
			"and --context uses that", name)
	}
	return nil
}

// contextFlags returns flags of kubectl that a context of the kubeconfig replaces.
func contextFlags() []string { return []string{"cluster", "user", "as", "as-group", "server", "token"} }

// nodeFlagOf returns the flag that chooses nodes, as the user of this command types it.
func nodeFlagOf(cmd *cobra.Command) string {
	if f := cmd.Root().PersistentFlags().Lookup(nodeFlag); f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + nodeFlag
}

// ofPlugin returns the lines of examples as the user types them, if kubectl runs swdt.
func ofPlugin(cmd *cobra.Command, examples string) string {
	if nodeFlagOf(cmd) == "-n" {
		return examples
	}
	var b strings.Builder
	for line := range strings.Lines(examples) {
		own, rest, found := strings.Cut(line, " -- ")
		b.WriteString(strings.ReplaceAll(own, " -n ", " --node "))
		if found {
			b.WriteString(" -- " + rest)
		}
	}
	return b.String()
}
