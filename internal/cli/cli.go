// Package cli is swdt's command line. Each command has one file, with an options
// struct that is filled from flags, completed, validated and then run. Other
// packages, such as setup, push and sandbox, do the work of a command; this package
// parses the user's input, calls them and prints their results.
//
//   - cli.go, root.go, help.go: Run, the tree of commands, the layout of help
//   - global.go, nodes.go: the flags that all commands share; from node files to connections
//   - exit.go: errors to exit codes; Ctrl-C
//   - prompt.go: questions on the terminal
//   - one file for each command
package cli

import (
	"context"
	"io"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/agentbuild"
	"github.com/swdt-dev/swdt/internal/node/viapod"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Environment holds the parts of the surrounding process that commands use. The zero
// value is usable.
type Environment struct {
	// Program is the name that swdt was called by (argv[0]).
	Program string
	// Getenv reads an environment variable of this machine; nil: os.Getenv.
	Getenv func(string) string
	// LookupEnv is like Getenv, and reports whether the variable is set; nil: os.LookupEnv, or what Getenv reads.
	LookupEnv func(string) (string, bool)
	// Agent is the agent that nodes get; nil: the embedded one.
	Agent func() (agentbin.Agent, error)
	// Builder builds the agent and the probes that this swdt does not have inside; nil: with Go, from the source
	// of this swdt.
	Builder Builder
	// Drivers are the drivers of VMs; nil: the drivers of this swdt.
	Drivers func() []vm.Driver
	// Kind opens kind's library; nil: kindcluster.OpenKind.
	Kind func(ctx context.Context, runtime string, log log.Logger) (kindcluster.Kind, error)
	// Version and Commit describe this build; empty: the values that Go recorded.
	Version string
	Commit  string
}

func (e Environment) complete() Environment {
	if getenv := e.Getenv; getenv != nil && e.LookupEnv == nil {
		e.LookupEnv = func(name string) (string, bool) { return getenv(name), getenv(name) != "" }
	}
	if e.Getenv == nil {
		e.Getenv = os.Getenv
	}
	if e.LookupEnv == nil {
		e.LookupEnv = os.LookupEnv
	}
	if e.Agent == nil {
		e.Agent = agentbin.Embedded
	}
	if e.Builder == nil {
		e.Builder = new(agentbuild.Builder)
	}
	if e.Drivers == nil {
		e.Drivers = drivers
	}
	if e.Kind == nil {
		e.Kind = kindcluster.OpenKind
	}
	return e
}

// app is the state that all commands of one run share.
type app struct {
	streams   ui.Streams
	env       Environment
	global    globalOptions
	args      []string          // as the user typed them
	root      *cobra.Command    // the root of the command tree that Run executes
	completed *cobra.Command    // the command whose names of nodes are completed
	invoked   *cobra.Command    // the command that runs; nil before its flags are read
	loaded    int               // number of nodes in the node files; 0: no file was read
	typed     map[string]string // by the names of nodes that no file has: what the user typed for them
	nodesFrom string            // the flag whose value names the nodes if it is none of --node's names; ""
	former    []string          // what to warn of: former spellings that the user typed
	printer   *printer          // prints the result of the command that runs
	whole     *ui.Story         // of the command of which this one is a part; nil: none
	// ofDocument selects the existing cluster that spec.controlPlane.existing of the document of kind
	// Cluster names. It is empty if no such document was read, or if its cluster is made by swdt.
	ofDocument clusterOptions
	// readCluster reports whether this command works on the cluster of a document that --config names.
	readCluster bool

	clusters *viapod.Clusters // see viaClusters

	onlyReads bool // this command acts on nothing that the node files name, so a file that swdt found needs no trust

	keysWork *atomic.Bool // set while a live table reads keys from the terminal: swdt asks no question then
}

// Run runs one command line (without the program's name) and returns the exit
// code. It prints an error itself, once, and never calls os.Exit.
func Run(ctx context.Context, streams ui.Streams, args []string, env Environment) int {
	a := &app{streams: ui.Guarded(streams), env: env.complete(), keysWork: new(atomic.Bool), typed: map[string]string{}}
	root := a.rootCommand()
	a.root = root
	a.args = commandOfPowershell(root, args)
	root.SetArgs(a.args)
	err := root.ExecuteContext(ctx)
	return a.finish(ctx, err)
}

// stdin returns the standard input for a command's own use. It returns nil if there is no
// standard input, or if swdt itself reads a file from the standard input, such as a node file.
func (a *app) stdin() io.Reader {
	if a.streams.In == nil || a.global.readsStdin() {
		return nil
	}
	return a.streams.In
}
