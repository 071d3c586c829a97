//go:build !windows

// swdt-agent is the part of swdt that runs on a Windows node. On other systems, the program only
// prints an error.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "swdt-agent runs on Windows nodes, where swdt starts it; to build it for them: "+
		"GOOS=windows go build ./cmd/swdt-agent (or make build)")
	os.Exit(1)
}
