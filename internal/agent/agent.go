// Package agent is swdt's half on the node: gRPC services, one file each, thin
// over the interfaces of package host. It is portable: on Windows it runs on
// host/windows, in tests and in the sandbox on host/simulated, and it is the
// same code.
//
// A session is one stream (the agent's stdin and stdout): it begins with the
// handshake, goes on with gRPC, and ends with the stream. Whatever the session
// started ends with it, its locks too. What must outlive it is the guardian's
// business: see package swap.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/swdt-dev/swdt/internal/custody"
	"github.com/swdt-dev/swdt/internal/handshake"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/pktmon"
	"github.com/swdt-dev/swdt/internal/swap"
)

// Machine is the machine an agent runs on, and the agent itself.
type Machine struct {
	Host       *host.Host
	Executable string      // the agent's own path on the node
	Hash       string      // SHA-256 of that file, lower-case hex
	Log        *log.Logger // for what only the node's side can tell; nil: discarded
}

// inCustody is m with files that believe nothing of swdt's own which another account
// could have put there.
func (m Machine) inCustody() Machine {
	m.Host = custody.Host(m.Host)
	return m
}

func (m Machine) logger() *log.Logger {
	if m.Log == nil {
		return log.New(io.Discard, "", 0)
	}
	return m.Log
}

// Exit codes of Main.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main is the agent's program. Without arguments it serves one session on stdin
// and stdout until stdin ends; with `guardian ID` it brings that transaction to
// its end, with `capture ID` that capture; with `install` it puts itself in its place
// on the node. It returns the exit code. Reads and
// writes that stdin and stdout do not let go of may still be blocked when it
// returns: end the process.
func Main(ctx context.Context, m Machine, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if m.Log == nil {
		m.Log = log.New(stderr, "swdt-agent: ", log.LstdFlags|log.LUTC)
	}
	switch {
	case len(args) == 0:
		return serveStandardStreams(ctx, m, stdin, stdout)
	case len(args) == 1 && args[0] == handshake.InstallArgument:
		return install(ctx, m, stdout)
	case len(args) == 2 && args[0] == swap.GuardianArgument:
		return guard(ctx, m.inCustody(), args[1])
	case len(args) == 2 && args[0] == pktmon.Argument:
		return guardCapture(ctx, m.inCustody(), args[1])
	default:
		fmt.Fprintln(stderr, "usage: swdt-agent [install | guardian ID | capture ID]\n"+
			"swdt starts this program on a node; it is not meant to be run by hand.")
		return exitUsage
	}
}

func serveStandardStreams(ctx context.Context, m Machine, stdin io.Reader, stdout io.Writer) int {
	if err := Serve(ctx, m, standardStreams{stdin, stdout}); err != nil {
		m.logger().Print(err)
		return exitFailed
	}
	return exitDone
}

// standardStreams is stdin and stdout as one stream.
type standardStreams struct {
	io.Reader
	io.Writer
}

func (s standardStreams) Close() error {
	var errs []error
	if c, ok := s.Writer.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	if c, ok := s.Reader.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
