// Command tiny is a Windows service that does nothing but run: the smallest Go program
// of this kind, to measure the cost of a binary's size.
package main

import (
	"io"
	"os"
)

// Set by -ldflags -X.
var version = "v0.0.0"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		io.WriteString(os.Stdout, "tiny "+version+"\n")
		return
	}
	if err := run(); err != nil {
		io.WriteString(os.Stderr, "tiny: "+err.Error()+"\n")
		os.Exit(1)
	}
}
