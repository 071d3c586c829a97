//go:build windows

// Command vfpctrl stands in for the tool of the virtual filtering platform on a node
// that has none: see package imitation.
package main

import (
	"context"
	"os"

	"github.com/swdt-dev/swdt/internal/platform/imitation/vfpctrlexe"
	"github.com/swdt-dev/swdt/internal/platform/windows"
)

func main() { os.Exit(vfpctrlexe.Main(context.Background(), windows.New(), os.Args[1:], os.Stdout)) }
