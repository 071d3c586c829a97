package pktmon

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
)

// errOutputLimit is the reason for the end of a live capture that has reached its limit of output.
var errOutputLimit = errors.New("it has reached its limit of output")

// printing is a running pktmon process that prints packets into the capture's text file.
type printing struct {
	ended  chan struct{}
	cancel context.CancelFunc
	args   []string
	code   int
	err    error
	full   bool
}

func startPrinting(ctx context.Context, windows *platform.Platform, plan captureplan.Plan) (*printing, error) {
	file, err := windows.Files.Create(captureplan.TextFile(plan.ID), platform.CreateTruncate)
	if err != nil {
		return nil, fmt.Errorf("create the file for pktmon's output: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &printing{ended: make(chan struct{}), cancel: cancel, args: plan.Start}
	out := &limitedFile{file: file, left: plan.MaxText, full: func() { p.full = true; cancel() }}
	go func() {
		defer close(p.ended)
		defer cancel()
		p.code, p.err = windows.Processes.Run(ctx, platform.Command{Path: captureplan.Program, Args: plan.Start,
			Stdout: out, Stderr: out})
		if err := file.Close(); p.err == nil {
			p.err = err
		}
	}()
	return p, nil
}

// stop ends the pktmon process and waits for its end. pktmon's driver may continue to capture.
func (p *printing) stop() {
	p.cancel()
	<-p.ended
}

// result returns the reason why pktmon ended although it was not stopped.
func (p *printing) result() (string, error) {
	switch {
	case p.full:
		return errOutputLimit.Error(), nil
	case p.err != nil:
		return "", p.err
	}
	return "", &captureplan.CommandError{Args: p.args, Code: p.code, Output: "it stopped printing"}
}

// limitedFile writes data to a file up to a limit, and drops the rest. When it reaches the limit, it
// calls the function `full`.
type limitedFile struct {
	file platform.WriteFile
	left int64
	full func()
}

func (b *limitedFile) Write(data []byte) (int, error) {
	take := data
	if int64(len(take)) >= b.left {
		take = take[:b.left]
		b.full()
	}
	b.left -= int64(len(take))
	if _, err := b.file.Write(take); err != nil {
		return 0, err
	}
	return len(data), nil
}
