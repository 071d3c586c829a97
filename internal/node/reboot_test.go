package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
)

func TestAwaitBoot(t *testing.T) {
	answers := func(list ...any) func(context.Context) (string, error) {
		next := 0
		return func(context.Context) (string, error) {
			answer := list[min(next, len(list)-1)]
			next++
			if err, ok := answer.(error); ok {
				return "", err
			}
			return answer.(string), nil
		}
	}
	run := func(t *testing.T, ask func(context.Context) (string, error)) (took time.Duration, err error) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			begun := time.Now()
			err = awaitBoot(ctx, "old", ask)
			took = time.Since(begun)
		})
		return took, err
	}
	refused := &ssh.RefusedError{Address: "node:22"}
	rejected := &ssh.AuthError{User: "Administrator", Passwords: 1}

	t.Run("goes down and comes back", func(t *testing.T) {
		took, err := run(t, answers("old", "old", refused, refused, rejected, "new"))
		switch {
		case err != nil:
			t.Error(err)
		case took != 10*time.Second:
			t.Errorf("took is %v, want %v", took, 10*time.Second)
		}
	})
	t.Run("never goes down", func(t *testing.T) {
		took, err := run(t, answers("old"))
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("the error is %v, want %v", err, context.DeadlineExceeded)
		case !strings.Contains(err.Error(), "still running"):
			t.Errorf("err.Error() lacks %q:\n%s", "still running", err.Error())
		case took != 10*time.Minute:
			t.Errorf("took is %v, want %v", took, 10*time.Minute)
		}
	})
	t.Run("never comes back", func(t *testing.T) {
		_, err := run(t, answers("old", refused))
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("the error is %v, want %v", err, context.DeadlineExceeded)
		case !errors.Is(err, refused):
			t.Errorf("the error is %v, want %v", err, refused)
		}
	})
	t.Run("an attempt that hangs is given up", func(t *testing.T) {
		first := true
		took, err := run(t, func(ctx context.Context) (string, error) {
			if !first {
				return "new", nil
			}
			first = false
			<-ctx.Done()
			return "", ctx.Err()
		})
		switch {
		case err != nil:
			t.Error(err)
		case took > time.Minute:
			t.Errorf("took is %v, want at most %v", took, time.Minute)
		}
	})
	t.Run("does not lock the account", func(t *testing.T) {
		took, err := run(t, answers(rejected))
		switch {
		case !errors.Is(err, rejected):
			t.Errorf("the error is %v, want %v", err, rejected)
		case took > time.Minute:
			t.Errorf("took is %v, want at most %v", took, time.Minute)
		}
	})
	// A member of a domain rejects every key until a domain controller answers. Rejected keys lock no account.
	t.Run("keys are rejected for a minute", func(t *testing.T) {
		noController := &ssh.AuthError{User: `CORP\admin`}
		var answered []any
		for range 30 {
			answered = append(answered, noController)
		}
		if _, err := run(t, answers(append(answered, "new")...)); err != nil {
			t.Error(err)
		}
	})
	t.Run("another machine answers", func(t *testing.T) {
		changed := &ssh.HostKeyChangedError{Address: "node:22"}
		took, err := run(t, answers(refused, changed))
		switch {
		case !errors.Is(err, changed):
			t.Errorf("the error is %v, want %v", err, changed)
		case took > time.Minute:
			t.Errorf("took is %v, want at most %v", took, time.Minute)
		}
	})
}

// A follower of logs, too, waits until the domain of a rebooted node answers, and stops at a rejected password.
func TestRestoreWaitsWhileKeysAreRejected(t *testing.T) {
	restore := func(rejected *ssh.AuthError) (tried int, err error) {
		synctest.Test(t, func(t *testing.T) {
			n := &Node{}
			n.OnReconnect(func(context.Context) error {
				if tried++; tried > 10 {
					return nil
				}
				return &UnreachableError{Err: rejected}
			})
			err = n.restore(t.Context(), ui.Discard{})
		})
		return tried, err
	}
	if _, err := restore(&ssh.AuthError{User: `CORP\admin`}); err != nil {
		t.Error(err)
	}
	if tried, err := restore(&ssh.AuthError{User: `CORP\admin`, Passwords: 1}); err == nil || tried != 1 {
		t.Errorf("after a rejected password: %v, %d logins", err, tried)
	}
}
