// Package cli is swdt's command line: one file a command, each an options
// struct that is filled from flags, completed, validated and then run. What a
// command does lives a floor below, in setup, deploy, sandbox and others; here
// is only what a person types and reads.
package cli

import (
	"context"
	"fmt"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Environment is what a command needs of the process around it.
type Environment struct {
	// Program is how swdt was called (argv[0]).
	Program string
	// Getenv reads an environment variable of this machine.
	Getenv func(string) string
}

// Run runs one command line (without the program's name) and returns the exit
// code. It never calls os.Exit.
func Run(ctx context.Context, streams ui.Streams, args []string, env Environment) int {
	fmt.Fprintln(streams.Err, "swdt: no commands yet")
	return 1
}
