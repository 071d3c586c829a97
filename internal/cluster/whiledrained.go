package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// Drainer drains and uncordons nodes. *Cluster implements it.
type Drainer interface {
	Drain(ctx context.Context, m Machine, o DrainOptions, r Reporter) (Drained, error)
	Uncordon(ctx context.Context, name string) (bool, error)
}

// Bounds of the call that uncordons a node. uncordonTimeoutInterrupted applies after Ctrl-C,
// since the prompt must return within a second.
const (
	uncordonTimeout            = 15 * time.Second
	uncordonTimeoutInterrupted = 400 * time.Millisecond
)

// WhileDrained drains a machine's node, makes a change, and then uncordons the node, even if ctx
// has ended by then. If the drain fails, WhileDrained returns the drain's error and does not make
// the change; the drain also fails if the Node of that name belongs to another machine. If the
// change fails, the node stays cordoned, with a warning that names the remedy, unless o.Usable
// accepts the error. If the change succeeds but the node cannot be uncordoned, the error is a
// *CordonedError. A cordon that swdt did not make stays.
func WhileDrained(ctx context.Context, c Drainer, m Machine, o DrainOptions, r Reporter,
	change func(context.Context) error) error {
	r.Step("draining %s", m.Node)
	done, err := c.Drain(ctx, m, o, r)
	if err != nil {
		return err
	}
	failed := change(ctx)
	switch {
	case !done.Cordoned:
		return failed
	case failed != nil && (o.Usable == nil || !o.Usable(failed)):
		r.Warn("%v", &CordonedError{Node: m.Node})
		return failed
	}
	err = uncordonAnyway(ctx, c, m.Node)
	if err != nil && failed != nil {
		r.Warn("%v", err)
		return failed
	}
	if err != nil {
		return err
	}
	return failed
}

// uncordonAnyway uncordons a node, even if ctx has ended.
func uncordonAnyway(ctx context.Context, c Drainer, name string) error {
	limit := uncordonTimeout
	if ctx.Err() != nil {
		limit = uncordonTimeoutInterrupted
	}
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if _, err := c.Uncordon(lasting, name); err != nil {
		return &CordonedError{Node: name, Err: err}
	}
	return nil
}

// CordonedError reports a node that swdt cordoned and did not uncordon.
type CordonedError struct {
	Node string
	Err  error // the error of uncordoning; nil: swdt did not try, since the node may not work
}

func (e *CordonedError) Error() string {
	uncordon := remedy.KubectlCommand("uncordon", e.Node)
	if e.Err == nil {
		return fmt.Sprintf("node %s stays cordoned, since it may not work: %s when it does", e.Node, uncordon)
	}
	return fmt.Sprintf("node %s stays cordoned: %v; %s", e.Node, e.Err, uncordon)
}

func (e *CordonedError) Unwrap() error { return e.Err }
