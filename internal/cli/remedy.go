package cli

import (
	"cmp"
	"encoding/csv"
	"errors"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// remedies returns a text whose commands this user can paste. It adds the flags of this
// invocation to each command, and limits the command to node, which may be several nodes
// separated by commas. If node is "", the command is for the nodes of this invocation.
func (a *app) remedies(node, text string) string {
	return remedy.Rewrite(text, func(args []string) string { return a.commandLine(node, args) })
}

// remediesFor is like remedies, but for a text that other users read. It adds only the node, since
// these users have their own node files.
func (a *app) remediesFor(node, text string) string {
	elsewhere := &app{env: a.env, root: a.root}
	return elsewhere.remedies(node, text)
}

// remediesOn is remedies for a text about several nodes.
func (a *app) remediesOn(nodes []string, text string) string {
	return a.remedies(strings.Join(listValues(nodes), ","), text)
}

// commandLine returns one swdt command, quoted for the user's shell.
func (a *app) commandLine(node string, args []string) string {
	if a.root == nil { // the command line could not be parsed
		return a.shell().Join(args)
	}
	if args[0] == remedy.Kubectl {
		return a.shell().Join(a.kubectl(args))
	}
	command, _, err := a.root.Find(args[1:])
	line := a.withoutNodeShort(append(strings.Fields(a.root.CommandPath()), args[1:]...))
	if err != nil || command == a.root {
		return a.shell().Join(line)
	}
	line = a.withSettings(line)
	own := ownArguments(line)
	if slices.Contains(line[:own], "--help") {
		return a.shell().Join(line) // help depends on no flag
	}
	if command.Annotations[usesNodes] == "" {
		return a.shell().Join(slices.Insert(line, own, a.carriedCluster(command, line[:own])...))
	}
	return a.shell().Join(slices.Insert(line, own, a.carried(command, node, line[:own])...))
}

// withSettings adds the settings of --via of this invocation to those that the line names.
func (a *app) withSettings(line []string) []string {
	at := slices.Index(line[:ownArguments(line)], "--via")
	if at < 0 || at+1 == len(line) || !strings.HasPrefix(line[at+1], viaKubernetes) {
		return line
	}
	line = slices.Clone(line)
	line[at+1] = a.global.via.with(line[at+1])
	return line
}

// ownArguments counts the arguments before "--".
func ownArguments(line []string) int {
	if dash := slices.Index(line, "--"); dash >= 0 {
		return dash
	}
	return len(line)
}

// kubectl returns a kubectl command for the cluster of this invocation. A command that
// runs swdt as a plugin is already complete.
func (a *app) kubectl(args []string) []string {
	own := ownArguments(args)
	if len(args) > 1 && args[1] == remedy.Swdt {
		return args
	}
	flags := &carriedFlags{line: args[:own]}
	for _, name := range clusterFlags() {
		flags.add(name, "", a.invokedWith(name))
	}
	flags.addCluster(a.clusterOfVia())
	flags.addCluster(a.ofDocument)
	return slices.Insert(slices.Clone(args), own, flags.all...)
}

// clusterFlags returns the flags that name the cluster, in swdt as in kubectl.
func clusterFlags() []string { return []string{"kubeconfig", "context"} }

// invokedWith returns the value of a flag of this invocation, or "" if its command has
// no such flag.
func (a *app) invokedWith(flag string) string {
	cmd := cmp.Or(a.completed, a.invoked)
	if cmd == nil || cmd.Flags().Lookup(flag) == nil {
		return ""
	}
	return cmd.Flags().Lookup(flag).Value.String()
}

// carriedFlags are flags to add to a command line that may already have some of them.
type carriedFlags struct {
	line []string
	all  []string
}

func (c *carriedFlags) has(name, short string) bool {
	return slices.ContainsFunc(c.line, func(word string) bool {
		return word == "--"+name || strings.HasPrefix(word, "--"+name+"=") || short != "" &&
			strings.HasPrefix(word, "-"+short) && !strings.HasPrefix(word, "--")
	})
}

// add adds a flag with each non-empty value, unless the line already has the flag.
func (c *carriedFlags) add(name, short string, values ...string) {
	if c.has(name, short) {
		return
	}
	for _, value := range values {
		switch {
		case value == "":
		case short != "":
			c.all = append(c.all, "-"+short, value)
		default:
			c.all = append(c.all, "--"+name, value)
		}
	}
}

// addCluster adds the flags that name a cluster, unless the command line names one.
func (c *carriedFlags) addCluster(o clusterOptions) {
	if len(c.all) > 0 || c.has("kubeconfig", "") || c.has("context", "") {
		return
	}
	c.add("kubeconfig", "", o.kubeconfig)
	c.add("context", "", o.context)
}

// carried returns the flags that a proposed command needs to work like this invocation:
// node files, node, how to reach the node, and cluster. It omits the flags that the
// command already has.
func (a *app) carried(command *cobra.Command, node string, line []string) []string {
	flags := &carriedFlags{line: line}
	flags.add("config", "c", a.global.config...)
	switch {
	case flags.has(nodeFlag, a.nodeShort()), flags.has("selector", "l"):
	case flags.has("print-rbac", ""): // the role has a rule for the labels
		flags.add("selector", "l", a.global.selector)
	case node == "":
		flags.add(nodeFlag, a.nodeShort(), strings.Join(a.global.nodes, ","))
		flags.add("selector", "l", a.global.selector)
	case a.loaded != 1 || a.typed[node] != "":
		flags.add(nodeFlag, a.nodeShort(), cmp.Or(a.typed[node], node))
	}
	flags.add("known-hosts", "", a.global.knownHosts)
	flags.add("ssh-config", "", a.global.sshConfig)
	if !a.global.via.implied {
		flags.add(viaName, "", a.global.via.text)
	}
	if a.global.via.text != "" && command.Annotations[usesCluster] == "" {
		for _, name := range clusterFlags() {
			flags.add(name, "", a.invokedWith(name))
		}
	}
	return append(flags.all, a.carriedCluster(command, line)...)
}

// carriedCluster returns the flags that name this invocation's cluster, if the proposed command has
// such flags.
func (a *app) carriedCluster(command *cobra.Command, line []string) []string {
	flags := &carriedFlags{line: line}
	document := a.readCluster && command.Annotations[usesDocument] != "" && len(a.global.config) > 0
	if document {
		flags.add("config", "c", a.global.config...)
	}
	for _, name := range clusterFlags() {
		if command.Annotations[usesCluster] != "" || name == "kubeconfig" && command.Annotations[makesCluster] != "" {
			flags.add(name, "", a.invokedWith(name))
		}
	}
	if command.Annotations[usesCluster] != "" && !document {
		flags.addCluster(a.ofDocument)
	}
	return flags.all
}

// listValues quotes values for a flag that takes a list.
func listValues(values []string) []string {
	written := make([]string, len(values))
	for i, value := range values {
		written[i] = value
		if strings.ContainsAny(value, ",\"\n") {
			var b strings.Builder
			w := csv.NewWriter(&b)
			// Writing to a strings.Builder cannot fail.
			_ = w.Write([]string{value})
			w.Flush()
			written[i] = strings.TrimSuffix(b.String(), "\n")
		}
	}
	return written
}

// shell returns the family of the user's shell. On Windows, shells that come from
// Unix set SHELL.
func (a *app) shell() remedy.Shell {
	if runtime.GOOS == "windows" && a.env.Getenv("SHELL") == "" {
		return remedy.Windows
	}
	return remedy.POSIX
}

// remediedError is an error whose text proposes commands for one node.
type remediedError struct {
	text string
	err  error
}

func (e *remediedError) Error() string { return e.text }
func (e *remediedError) Unwrap() error { return e.err }

// remedied rewrites the commands in an error's text, once.
func (a *app) remedied(node string, err error) error {
	var done *remediedError
	if err == nil || errors.As(err, &done) {
		return err
	}
	text := err.Error()
	rendered := a.remedies(node, text)
	if rendered == text {
		return err
	}
	return &remediedError{rendered, err}
}
