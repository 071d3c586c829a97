//go:build !windows

// swdt-agent is swdt's half on a Windows node; elsewhere there is nothing for
// it to do.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "swdt-agent runs on Windows nodes, where swdt starts it; to build it for them: GOOS=windows go build ./cmd/swdt-agent (or make build)")
	os.Exit(1)
}
