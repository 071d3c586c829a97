package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func (run *runner) lock(ctx context.Context) error {
	holder := run.opts.Holder
	if holder == "" {
		holder = Holder("setup")
	}
	if err := run.opts.Machine.Lock(ctx, holder); err != nil {
		return LockError(err)
	}
	return nil
}

// unlock releases the lock. Without unlock, the lock would last until the session ends, and the
// session may be used for more work.
func (run *runner) unlock(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	if err := run.opts.Machine.Unlock(ctx); err != nil {
		run.reporter.Debug("unlock the node: %v", err)
	}
}

// LockError returns the error of a node that could not be locked. If another swdt holds the lock,
// the error is a *BusyError that names the holder.
func LockError(err error) error {
	var locked *fault.LockedError
	if errors.As(err, &locked) {
		return &BusyError{Holder: string(locked.Holder), Err: err}
	}
	return fmt.Errorf("lock the node: %w", err)
}

// BusyError reports a node that another swdt is changing.
type BusyError struct {
	Holder string // the holder of the lock, as the function Holder describes it; empty: unknown
	Err    error
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s changes the node; wait until that run has ended, and try again",
		cmp.Or(e.Holder, "another swdt"))
}

func (e *BusyError) Unwrap() error { return e.Err }

// Holder returns a text with this user, machine, command and process, and the current time. swdt
// prints this text to other users who find the node locked.
func Holder(command string) string {
	name := "an unknown user"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "an unknown machine"
	}
	return fmt.Sprintf("%s@%s, swdt %s, process %d, since %s", name, machine, command, os.Getpid(),
		time.Now().Format(time.TimeOnly))
}
