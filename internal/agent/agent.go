// Package agent is the part of swdt that runs on the node. It serves gRPC services, one file each, which add little
// to the interfaces of package platform. It is portable: the same code runs on platform/windows on Windows, and on
// platform/simulated in tests and in the sandbox.
//
// A session is one stream (the agent's stdin and stdout). It begins with the handshake, continues with gRPC, and
// ends when the stream ends. Everything that the session started, including its locks, ends at the same time. Work
// that must outlive a session belongs to a guardian, a Windows service that runs the agent's executable: see
// packages swap and pktmon.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/swdt-dev/swdt/internal/agent/custody"
	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/throwaway"
)

// Machine is the machine on which an agent runs, and the agent itself.
type Machine struct {
	Platform   *platform.Platform
	Executable string // the agent's own path on the node
	Hash       string // SHA-256 of the file Executable, lower-case hex
	// Log receives events that only the node can observe. If it is nil, Main logs them to stderr,
	// and Serve discards them.
	Log *log.Logger
}

// inCustody returns m with its files wrapped by package custody, which refuses every file below
// swdt's root that another account could have made or changed.
func (m Machine) inCustody() Machine {
	m.Platform = custody.Platform(m.Platform)
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

// Main is the agent's program. Without arguments it serves one session on stdin and stdout until
// stdin ends. With the arguments `guardian ID` it finishes the transaction with that ID, with
// `capture ID` it finishes the capture with that ID, and with `install` it installs the agent on
// the node. With throwaway.Argument it is the throw-away program of `swdt selftest`. Main returns the exit code. A read of stdin or a write to stdout may still be blocked
// when Main returns, so the caller must then end the process.
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
	case args[0] == throwaway.Argument:
		return throwawayMain(ctx, m.inCustody(), args[1:], stdin, stdout, stderr)
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

// standardStreams joins stdin and stdout into one stream.
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
