//go:build windows

// Command pktmon stands for Windows' packet monitor on a node that has none: see
// package imitation.
package main

import (
	"context"
	"os"

	"github.com/swdt-dev/swdt/internal/host/windows"
	"github.com/swdt-dev/swdt/internal/pktmon/imitation"
)

func main() { os.Exit(imitation.Main(context.Background(), windows.New(), os.Args[1:], os.Stdout)) }
