package pktmon

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/host"
)

// errFull ends a live capture that has printed as much as it may.
var errFull = errors.New("it has printed as much as it may")

// printing is a pktmon that prints packets into the capture's text file.
type printing struct {
	ended  chan struct{}
	cancel context.CancelFunc
	args   []string
	code   int
	err    error
	full   bool
}

func startPrinting(ctx context.Context, h *host.Host, plan Plan) (*printing, error) {
	file, err := h.Files.Create(TextFile(plan.ID), host.CreateTruncate)
	if err != nil {
		return nil, fmt.Errorf("create the file for what pktmon prints: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &printing{ended: make(chan struct{}), cancel: cancel, args: plan.Start}
	out := &bounded{file: file, left: plan.MaxText, full: func() { p.full = true; cancel() }}
	go func() {
		defer close(p.ended)
		defer cancel()
		p.code, p.err = h.Processes.Run(ctx, host.Command{Path: Program, Args: plan.Start, Stdout: out, Stderr: out})
		if err := file.Close(); p.err == nil {
			p.err = err
		}
	}()
	return p, nil
}

// stop ends pktmon. The driver may go on.
func (p *printing) stop() {
	p.cancel()
	<-p.ended
}

// result is why it ended by itself.
func (p *printing) result() (string, error) {
	switch {
	case p.full:
		return errFull.Error(), nil
	case p.err != nil:
		return "", p.err
	}
	return "", &CommandError{Args: p.args, Code: p.code, Output: "it stopped printing"}
}

// bounded writes until it is full. What is beyond is dropped.
type bounded struct {
	file host.WriteFile
	left int64
	full func()
}

func (b *bounded) Write(data []byte) (int, error) {
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
