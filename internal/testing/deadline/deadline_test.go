package deadline_test

import (
	"context"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/deadline"
)

func TestTheDeadlinePassesAtAnEvent(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	ctx, pass := deadline.Context(parent)
	child, release := context.WithCancel(ctx)
	defer release()
	cancel()
	if ctx.Err() != nil || child.Err() != nil {
		t.Errorf("before the event: %v, of a child %v", ctx.Err(), child.Err())
	}
	pass()
	pass()
	<-ctx.Done()
	<-child.Done()
	for name, c := range map[string]context.Context{"the context": ctx, "a child": child} {
		if c.Err() != context.DeadlineExceeded || context.Cause(c) != context.DeadlineExceeded {
			t.Errorf("%s: %v, caused by %v", name, c.Err(), context.Cause(c))
		}
	}
}
