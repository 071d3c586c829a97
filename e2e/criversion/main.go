//go:build windows

// Command criversion prints the version of the runtime that serves CRI on a named pipe. The tests
// use it as a check that is independent of swdt's health check.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/swdt-dev/swdt/internal/wire/cri"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	version, err := cri.Version(ctx, func(ctx context.Context) (net.Conn, error) {
		return winio.DialPipeContext(ctx, `\\.\pipe\containerd-containerd`)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "criversion:", err)
		os.Exit(1)
	}
	fmt.Println(version.RuntimeName, version.RuntimeVersion)
}
