package command

import (
	"context"
	"errors"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/ui/console"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// RunFunc runs a program with the streams, and with a terminal of this size at first.
type RunFunc func(context.Context, *agentv1.TerminalSize, Streams) (int, error)

// OnTerminal runs a program of a node on your terminal, to its end, and puts the terminal back. If the
// node does not have the program, OnTerminal runs the next one. The error is an *interrupt.Error if the
// person ended the session with the escape key, or a signal did.
func OnTerminal(ctx context.Context, files console.Files, programs ...RunFunc) (code int, err error) {
	ctx, c, err := console.Open(ctx, files)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	sizes := make(chan *agentv1.TerminalSize)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case size := <-c.Resized():
				select {
				case sizes <- terminalSize(size):
				case <-stop:
					return
				}
			case <-stop:
				return
			}
		}
	}()
	for _, run := range programs {
		keys, drop := context.WithCancel(ctx) // the next program gets the keys that this one has not read
		code, err = run(ctx, terminalSize(c.Size()), Streams{Stdin: c.Keys(keys), Stdout: c.Screen(), Resized: sizes})
		drop()
		if !errors.Is(err, fault.ErrNotExist) {
			break
		}
	}
	var interrupted *interrupt.Error
	if err != nil && errors.As(context.Cause(ctx), &interrupted) {
		return 0, interrupted
	}
	return code, err
}

func terminalSize(size console.Size) *agentv1.TerminalSize {
	return &agentv1.TerminalSize{Columns: uint32(size.Columns), Rows: uint32(size.Rows)}
}
