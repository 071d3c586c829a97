// swdt is the inner loop for people who develop Kubernetes on Windows nodes:
// over SSH, it pushes rebuilt binaries to nodes and restarts the services that
// run them.
package main

import (
	"context"
	"os"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// The linker sets these: -X main.version=… -X main.commit=…
var version, commit string

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := cli.Interruptible(context.Background(), os.Exit)
	defer stop()
	streams := ui.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	return cli.Run(ctx, streams, os.Args[1:], cli.Environment{Program: os.Args[0], Version: version, Commit: commit})
}
