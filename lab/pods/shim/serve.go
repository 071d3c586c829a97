//go:build windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	task "github.com/containerd/containerd/api/runtime/task/v2"
	"github.com/containerd/ttrpc"

	"github.com/swdt-dev/swdt/lab/pods/pipe"
)

// serve runs the shim's task service until containerd shuts it down.
func serve(o options, ready *os.File) error {
	listener, err := pipe.Listen(o.address())
	if err != nil {
		return fmt.Errorf("listen on %s: %w", o.address(), err)
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	events := publish(ctx, os.Getenv("TTRPC_ADDRESS"), o.namespace)
	server.Register("containerd.runhcs.v1.diag.ShimDiag", map[string]ttrpc.Method{"DiagStacks": diagStacks})
	task.RegisterTaskService(server, &service{events: events, end: end, containers: map[string]*container{}})
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	if _, err := io.WriteString(ready, o.address()+"\n"); err != nil {
		return err
	}
	if err := ready.Close(); err != nil {
		return err
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		// ctx has ended, but the answer to Shutdown is still being sent: wait with another context.
		graceful, cancel := context.WithTimeout(context.Background(), shutdownLimit)
		defer cancel()
		err := server.Shutdown(graceful)
		if errors.Is(err, context.DeadlineExceeded) {
			return server.Close()
		}
		return err
	}
}
