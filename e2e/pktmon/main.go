//go:build windows

// Command pktmon stands in for Windows' packet monitor on a node that has none: see
// package imitation.
package main

import (
	"context"
	"os"

	"github.com/swdt-dev/swdt/internal/platform/imitation/pktmonexe"
	"github.com/swdt-dev/swdt/internal/platform/windows"
)

func main() { os.Exit(pktmonexe.Main(context.Background(), windows.New(), os.Args[1:], os.Stdout)) }
