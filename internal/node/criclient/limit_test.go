package criclient

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A call waits for a slow runtime, but not for one that hangs; a command in a container has no time
// limit.
func TestTheLimitOfAnAnswer(t *testing.T) {
	const limit = 10 * time.Second
	list, run := runtimev1.RuntimeService_ListPodSandbox_FullMethodName,
		runtimev1.RuntimeService_ExecSync_FullMethodName
	for name, c := range map[string]struct {
		method       string
		limit, takes time.Duration
		silent       bool
	}{
		"slow":     {list, limit, limit - time.Second, false},
		"hanging":  {list, limit, time.Hour, true},
		"a run":    {run, limit, time.Hour, false},
		"no limit": {list, 0, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := answeringWithin(c.limit)(t.Context(), c.method, nil, nil, nil, answeringAfter(c.takes))
				var silent *SilentError
				switch {
				case errors.As(err, &silent) != c.silent:
					t.Errorf("errors.As(err, &silent) is %v, want %v", errors.As(err, &silent), c.silent)
				case (err != nil) != c.silent:
					t.Errorf("(err != nil) is %v, want %v", (err != nil), c.silent)
				}
				if want := min(c.takes, limit); c.silent && time.Since(began) != want {
					t.Errorf("waited for %s, want %s", time.Since(began), want)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := answeringWithin(limit)(ctx, list, nil, nil, nil, answeringAfter(time.Hour))
	var silent *SilentError
	if err == nil || errors.As(err, &silent) {
		t.Errorf("cancelled: %v", err)
	}
}

// answeringAfter returns the invoker of a runtime that answers after this time.
func answeringAfter(takes time.Duration) grpc.UnaryInvoker {
	return func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		select {
		case <-time.After(takes):
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}
