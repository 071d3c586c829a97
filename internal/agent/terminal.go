package agent

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
)

// newTerminal returns the terminal that a client requests, nil for none, and a function that
// resizes it. The function never blocks: if sizes arrive faster than they are used, only the last
// one counts. It ignores invalid sizes. Only one goroutine may call it.
func newTerminal(size *agentv1.TerminalSize) (*platform.Terminal, func(*agentv1.TerminalSize), error) {
	if size == nil {
		return nil, func(*agentv1.TerminalSize) {}, nil
	}
	first := terminalSize(size)
	if !first.Valid() {
		return nil, nil, status.Errorf(codes.InvalidArgument,
			"run a command: a terminal of %d columns and %d rows; use 1 to %d", size.GetColumns(), size.GetRows(),
			platform.MostCells)
	}
	sizes := make(chan platform.TerminalSize, 1)
	resize := func(size *agentv1.TerminalSize) {
		next := terminalSize(size)
		if !next.Valid() {
			return
		}
		select {
		case <-sizes: // a size that was not used yet
		default:
		}
		sizes <- next // has room, since no other goroutine sends
	}
	return &platform.Terminal{Size: first, Resized: sizes}, resize, nil
}

// terminalSize converts a size; a number that is too large becomes an invalid one.
func terminalSize(size *agentv1.TerminalSize) platform.TerminalSize {
	return platform.TerminalSize{
		Columns: int(min(size.GetColumns(), platform.MostCells+1)),
		Rows:    int(min(size.GetRows(), platform.MostCells+1)),
	}
}
