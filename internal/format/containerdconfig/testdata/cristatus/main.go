//go:build windows

// Command cristatus waits for a runtime that serves CRI on a named pipe, and
// prints its StatusResponse unchanged.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/swdt-dev/swdt/internal/wire/cri"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "cristatus:", err)
		os.Exit(1)
	}
}

func run(pipe string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// Wine loses the first client of a pipe, so this client comes first and stays unused. The
	// runtime never sees it.
	first, err := await(ctx, pipe)
	if err != nil {
		return err
	}
	defer first.Close()
	status, err := cri.Status(ctx, func(ctx context.Context) (net.Conn, error) { return winio.DialPipeContext(ctx, pipe) }, true)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(status)
	return err
}

// await dials the pipe until a server listens on it.
func await(ctx context.Context, pipe string) (net.Conn, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := winio.DialPipeContext(ctx, pipe)
		if !errors.Is(err, os.ErrNotExist) {
			return conn, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
