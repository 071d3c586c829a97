// swdt-node runs on a Windows node, in a HostProcess pod, and carries out the orders of the node's
// NodeState. The manifests under deploy/ install it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/swdt-dev/swdt/internal/rollout/onnode"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := onnode.Main(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "swdt-node:", err)
		os.Exit(1)
	}
}
