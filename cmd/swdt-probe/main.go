// Command swdt-probe runs in pods for "swdt netpol". Package netprobe has its description.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/swdt-dev/swdt/internal/proof/netprobe"
)

func main() {
	if err := netprobe.Run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "swdt-probe:", err)
		os.Exit(1)
	}
}
