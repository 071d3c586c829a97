//go:build windows

// Command powershell stands in for PowerShell on a node that has none: see package powershellexe.
package main

import (
	"os"

	"github.com/swdt-dev/swdt/internal/sandbox/powershellexe"
)

func main() {
	os.Exit(powershellexe.Main(os.Args[1:], powershellexe.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
