// Package cli is swdt's command line: one file a command, each an options
// struct that is filled from flags, completed, validated and then run. What a
// command does lives a floor below, in setup, deploy, sandbox and others; here
// is only what a person types and reads.
//
//   - cli.go, root.go, help.go: Run, the tree of commands, how help looks
//   - global.go, nodes.go: the flags that all share; from node files to connections
//   - exit.go, interrupt.go: errors to exit codes; Ctrl-C
//   - prompt.go: questions on the terminal
//   - one file for each command
package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/agentbin"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Environment is what a command needs of the process around it. The zero value
// is a usable one.
type Environment struct {
	// Program is how swdt was called (argv[0]).
	Program string
	// Getenv reads an environment variable of this machine; nil: os.Getenv.
	Getenv func(string) string
	// Agent is the agent that nodes get; nil: the embedded one.
	Agent func() (agentbin.Agent, error)
	// Version and Commit of this build; empty: what Go recorded.
	Version string
	Commit  string
}

func (e Environment) complete() Environment {
	if e.Getenv == nil {
		e.Getenv = os.Getenv
	}
	if e.Agent == nil {
		e.Agent = agentbin.Embedded
	}
	return e
}

// app is what all commands of one run share.
type app struct {
	streams ui.Streams
	env     Environment
	global  globalOptions
	args    []string       // as they were typed
	root    *cobra.Command // of the tree that Run runs
	invoked *cobra.Command // the one of it that runs; nil before its flags are read
	loaded  int            // how many nodes the node files have; 0: none were read
	printer *printer       // of the command that runs
}

// Run runs one command line (without the program's name) and returns the exit
// code. It prints an error itself, once, and never calls os.Exit.
func Run(ctx context.Context, streams ui.Streams, args []string, env Environment) int {
	a := &app{streams: ui.Guarded(streams), env: env.complete()}
	root := a.rootCommand()
	a.root = root
	a.args = commandOfPowershell(root, args)
	root.SetArgs(a.args)
	err := root.ExecuteContext(ctx)
	return a.finish(ctx, err)
}

// stdin is the command's standard input, or nil where there is none to read.
func (a *app) stdin() io.Reader {
	if a.streams.In == nil || a.global.readsStdin() {
		return nil
	}
	return a.streams.In
}
