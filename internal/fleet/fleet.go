// Package fleet does one piece of work on many nodes concurrently. Every node has its own
// result: a failure on one node neither stops the work on others nor hides their failures.
package fleet

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/swdt-dev/swdt/internal/config"
)

// DefaultParallel is the default for the maximum number of nodes that Run works on at a time.
const DefaultParallel = 10

// Result is the result of the work on one node. If Err is not nil, Value has only the part of
// the result that is known.
type Result[T any] struct {
	Document config.Document
	Value    T
	Err      error
}

// Name returns the node's name.
func (r Result[T]) Name() string { return r.Document.Node.Metadata.Name }

// Run does the work on every node, and returns the results in the order of the documents. It works
// on at most parallel nodes at a time (0: DefaultParallel). If the work on a node panics, the panic
// becomes the error of that node. If ctx ends before the work on a node has begun, the node's error
// is the cause of ctx.
func Run[T any](ctx context.Context, docs []config.Document, parallel int,
	work func(ctx context.Context, doc config.Document) (T, error),
) []Result[T] {
	if parallel < 1 {
		parallel = DefaultParallel
	}
	results := make([]Result[T], len(docs))
	free := make(chan struct{}, parallel)
	var running sync.WaitGroup
	for i, doc := range docs {
		results[i].Document = doc
		if !take(ctx, free) {
			results[i].Err = context.Cause(ctx)
			continue
		}
		running.Go(func() {
			defer func() { <-free }()
			results[i].Value, results[i].Err = guarded(ctx, doc, work)
		})
	}
	running.Wait()
	return results
}

// take waits for a free place in the channel and takes it. It returns false if ctx has already
// ended, or ends before a place is free.
func take(ctx context.Context, free chan<- struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case free <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func guarded[T any](ctx context.Context, doc config.Document,
	work func(ctx context.Context, doc config.Document) (T, error),
) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return work(ctx, doc)
}

// PanicError reports that the work on one node panicked, which is a bug of swdt.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("swdt has a bug (%v); please report it with this:\n%s", e.Value, e.Stack)
}

// Error lists the nodes on which the work failed.
type Error struct {
	Total  int
	Failed []Failure
}

// Failure is the failure of one node.
type Failure struct {
	Name string
	Err  error
}

// Failures returns an *Error with every node that failed and the reason, or nil if no node
// failed.
func Failures[T any](results []Result[T]) error {
	e := &Error{Total: len(results)}
	for _, r := range results {
		if r.Err != nil {
			e.Failed = append(e.Failed, Failure{Name: r.Name(), Err: r.Err})
		}
	}
	if len(e.Failed) == 0 {
		return nil
	}
	return e
}

func (e *Error) Error() string {
	if e.Total == 1 {
		return e.Failed[0].String()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d nodes failed:", len(e.Failed), e.Total)
	for _, f := range e.Failed {
		text.WriteString("\n  " + strings.ReplaceAll(f.String(), "\n", "\n    "))
	}
	return text.String()
}

func (f Failure) String() string { return fmt.Sprintf("%s: %v", f.Name, f.Err) }

// Unwrap makes errors.Is and errors.As inspect every node's error.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f.Err
	}
	return errs
}
