// Package deadline has contexts whose deadline passes at an event of a test, and not at a time.
package deadline

import (
	"context"
	"sync"
)

// Context returns a context that ends with context.DeadlineExceeded when pass is called, once or more. It has the
// values of parent, and does not end with parent.
func Context(parent context.Context) (ctx context.Context, pass func()) {
	c := passed{Context: context.WithoutCancel(parent), done: make(chan struct{})}
	return c, sync.OnceFunc(func() { close(c.done) })
}

type passed struct {
	context.Context
	done chan struct{}
}

func (p passed) Done() <-chan struct{} { return p.done }

func (p passed) Err() error {
	select {
	case <-p.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
