// swdt is the inner loop for people who develop Kubernetes on Windows nodes.
package main

import (
	"context"
	"os"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

func main() {
	streams := ui.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	os.Exit(cli.Run(context.Background(), streams, os.Args[1:], cli.Environment{Program: os.Args[0], Getenv: os.Getenv}))
}
