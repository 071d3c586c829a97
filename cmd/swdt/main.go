// swdt is a command-line tool for people who develop and run Kubernetes on Windows nodes. Over SSH,
// it sets up nodes, pushes rebuilt binaries to them, restarts the services that run the binaries,
// and inspects the nodes.
package main

import (
	"context"
	"os"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// The linker sets version and commit: -X main.version=… -X main.commit=…
var version, commit string

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := cli.Interruptible(context.Background(), os.Stderr, os.Exit)
	defer stop()
	streams := ui.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	return cli.Run(ctx, streams, os.Args[1:], cli.Environment{Program: os.Args[0], Version: version, Commit: commit})
}
