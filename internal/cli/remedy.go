package cli

import (
	"encoding/csv"
	"errors"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/remedy"
)

// remedies returns text with its commands as this person can paste them: with the
// flags that were used for this invocation, and for this node alone, or for several
// with commas between them. An empty node stands for those that the invocation is
// about.
func (a *app) remedies(node, text string) string {
	return remedy.Rewrite(text, func(args []string) string { return a.commandLine(node, args) })
}

// remediesFor is remedies for a text that others read, elsewhere: only the node is
// added, since they have node files of their own.
func (a *app) remediesFor(node, text string) string {
	elsewhere := &app{env: a.env, root: a.root}
	return elsewhere.remedies(node, text)
}

// remediesOn is remedies for a text that is about several nodes.
func (a *app) remediesOn(nodes []string, text string) string {
	return a.remedies(strings.Join(listValues(nodes), ","), text)
}

// commandLine is one command of swdt, quoted for the user's shell.
func (a *app) commandLine(node string, args []string) string {
	if a.root == nil { // the command line could not even be read
		return a.shell().Join(args)
	}
	command, _, err := a.root.Find(args[1:])
	line := append(strings.Fields(a.root.CommandPath()), args[1:]...)
	if err != nil || command == a.root || command.Annotations[usesNodes] == "" {
		return a.shell().Join(line)
	}
	own := len(line)
	if dash := slices.Index(line, "--"); dash >= 0 {
		own = dash
	}
	return a.shell().Join(slices.Insert(line, own, a.carried(command, node, line[:own])...))
}

// carried are the flags that a proposed command must have to mean what this
// invocation is about: its node files and its node, how they are reached, and its
// cluster. What the command has already is left out.
func (a *app) carried(command *cobra.Command, node string, line []string) (flags []string) {
	add := func(name, short string, values ...string) {
		given := slices.ContainsFunc(line, func(word string) bool {
			return word == "--"+name || strings.HasPrefix(word, "--"+name+"=") || short != "" && strings.HasPrefix(word, "-"+short) && !strings.HasPrefix(word, "--")
		})
		if given {
			return
		}
		for _, value := range values {
			if short != "" {
				flags = append(flags, "-"+short, value)
			} else {
				flags = append(flags, "--"+name, value)
			}
		}
	}
	add("config", "c", listValues(a.global.config)...)
	switch {
	case node == "":
		add("node", "n", strings.Join(a.global.nodes, ","))
		add("selector", "l", a.global.selector)
	case a.loaded != 1:
		add("node", "n", node)
	}
	add("known-hosts", "", a.global.knownHosts)
	add("ssh-config", "", a.global.sshConfig)
	for _, name := range []string{"kubeconfig", "context"} {
		if a.invoked == nil || command.Flags().Lookup(name) == nil {
			continue
		}
		if used := a.invoked.Flags().Lookup(name); used != nil {
			add(name, "", used.Value.String())
		}
	}
	return withoutEmpty(flags)
}

// withoutEmpty drops flags whose value is empty.
func withoutEmpty(flags []string) (kept []string) {
	for i := 0; i+1 < len(flags); i += 2 {
		if flags[i+1] != "" {
			kept = append(kept, flags[i], flags[i+1])
		}
	}
	return kept
}

// listValues writes values as a flag reads them that takes a list.
func listValues(values []string) []string {
	written := make([]string, len(values))
	for i, value := range values {
		written[i] = value
		if strings.ContainsAny(value, ",\"\n") {
			var b strings.Builder
			w := csv.NewWriter(&b)
			// A strings.Builder takes everything.
			_ = w.Write([]string{value})
			w.Flush()
			written[i] = strings.TrimSuffix(b.String(), "\n")
		}
	}
	return written
}

// shell is the family of the user's shell. On Windows, the shells that come from
// Unix say so with SHELL.
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

// remedied renders the commands in an error's text, once.
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
