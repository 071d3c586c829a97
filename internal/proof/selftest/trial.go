package selftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// trial holds the node and the tools with which claims work.
type trial struct {
	node     *node.Node
	document config.Document
	agent    agentbin.Agent
	folder   string // on your machine, for the time of the run
	real     bool   // the node is a real Windows
	reporter ui.Reporter

	builds  map[string]build // of the throw-away program, by version
	answers []Answer         // of the claim that is being tried
	// restarting is the boot id before a restart that a claim has asked for; "": the node is not restarting.
	restarting string
}

// answer records what the node answered. The value is a string, an int, a bool or a []string.
func (t *trial) answer(key string, value any) {
	a := Answer{Key: key, Kind: "text", Value: fmt.Sprint(value)}
	switch v := value.(type) {
	case bool:
		a.Kind = "boolean"
	case int:
		a.Kind = "number"
	case []string:
		a.Kind, a.Value = "list", strings.Join(v, ", ")
	}
	t.answers = append(t.answers, a)
}

// ready connects again if the connection was lost, and takes the node's lock, so that no other swdt
// changes the node during the run. A session that holds the lock already keeps it.
func (t *trial) ready(ctx context.Context) error {
	err := t.lock(ctx)
	var lost *node.LostError
	if errors.As(err, &lost) {
		if err := t.node.Reconnect(ctx); err != nil {
			return err
		}
		err = t.lock(ctx)
	}
	if err != nil {
		return fmt.Errorf("lock the node: %w", err)
	}
	return nil
}

// settled waits until the node works on no transaction, and then holds the node's lock as ready does. In a
// transaction, the node needs the files and the service that a sweep removes.
func (t *trial) settled(ctx context.Context) error {
	if err := t.ready(ctx); err != nil {
		return err
	}
	if err := push.Settle(ctx, t.node, push.Options{Holder: holder}, t.reporter); err != nil {
		return fmt.Errorf("wait for the end of an interrupted push: %w", err)
	}
	return t.ready(ctx) // Settle has released the lock
}

// holder is the name under which selftest begins transactions.
const holder = "swdt selftest"

// lockLimit is how long the agent of a broken connection may hold the lock until it ends.
const lockLimit = 30 * time.Second

func (t *trial) lock(ctx context.Context) error {
	name := fmt.Sprintf("%s, process %d, since %s", holder, os.Getpid(), time.Now().Format(time.TimeOnly))
	return wait.Condition{
		Name: "the node's lock", Interval: 100 * time.Millisecond, MaxInterval: time.Second, Limit: lockLimit,
		Look: func(ctx context.Context) error {
			_, err := t.node.Machine.Lock(ctx, &agentv1.LockRequest{Holder: name})
			var locked *fault.LockedError
			if err != nil && !errors.As(err, &locked) {
				return wait.Stop(err)
			}
			if err != nil {
				return fmt.Errorf("%s changes the node: %w", cmp.Or(string(locked.Holder), "another swdt"), err)
			}
			return nil
		},
	}.Wait(ctx)
}

// expect returns an error if what the node answered is not what it should have answered.
func expect[T comparable](what string, got, want T) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s is %v, not %v", what, got, want)
}

// expectError returns an error unless err is the expected one.
func expectError(what string, err, want error) error {
	switch {
	case errors.Is(err, want):
		return nil
	case err == nil:
		return fmt.Errorf("%s succeeded, although it must fail: %w", what, want)
	}
	return fmt.Errorf("%s failed in another way than expected (%v): %w", what, want, err)
}

// inner reports the work below a claim. Its steps and warnings are part of what is tried, so they are
// details of the run.
type inner struct{ ui.Reporter }

func (r inner) Step(format string, args ...any)           { r.Debug(format, args...) }
func (r inner) Info(format string, args ...any)           { r.Debug(format, args...) }
func (r inner) Warn(format string, args ...any)           { r.Debug(format, args...) }
func (r inner) Transfer(name string, n int64) ui.Progress { return ui.Discard{}.Transfer(name, n) }
