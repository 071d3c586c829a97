package logs

import (
	"context"
	"errors"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// EachError calls each for each error that a source has logged on a node since a moment, by the node's
// clock. A node without such a log has no errors.
func EachError(ctx context.Context, n *node.Node, source string, since time.Time, r ui.Reporter,
	each func(Record)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	merger := NewMerger(false, eachRecord(each))
	in := merger.Begin()
	failed := make(chan error, 1)
	go func() {
		err := Show(ctx, n, Options{Sources: []string{source}, Since: since, Tail: -1, Level: logline.Error}, merger, in, r)
		in.Close(ctx)
		failed <- err
	}()
	err := merger.Run(ctx)
	cancel()
	err = errors.Join(err, <-failed)
	var (
		nothing *NothingError
		unknown *UnknownSourceError
	)
	if errors.As(err, &nothing) || errors.As(err, &unknown) {
		return nil
	}
	return err
}

// eachRecord is a Sink that calls a function.
type eachRecord func(Record)

func (e eachRecord) Record(r Record) error {
	e(r)
	return nil
}

func (e eachRecord) Flush() error { return nil }
