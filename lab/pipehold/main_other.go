//go:build !windows

// Command pipehold is for Wine; see main_windows.go.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "pipehold: runs on Windows (under Wine) only")
	os.Exit(2)
}
