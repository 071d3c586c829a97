// Package patience repeats changes of files that another program holds. Virus scanners, backup programs, indexers and
// WerFault open a file for seconds, when it is new or when a program that ran it has ended, and do not let others
// rename or remove it. All that the agent renames, removes and replaces goes through this package, so that there is one
// answer to the questions how long to wait and what to say.
package patience

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// Long is the patience of a change during which all services run: rustup waits about as long for such a file, and
	// npm's graceful-fs twice as long.
	Long = 30 * time.Second
	// Short is the patience of a change during which a service is stopped, or that a person makes by hand.
	Short = 5 * time.Second
	// brief is the patience after "access denied" if Windows names no process that has the file open: then an access
	// list is the likely cause, and waiting does not help.
	brief = 1500 * time.Millisecond

	firstPause, longestPause = 50 * time.Millisecond, time.Second
)

// HeldError reports that another program held a file.
type HeldError struct {
	Path    string
	Holders []platform.Holder // empty: Windows does not name them
	For     time.Duration     // how long the change was repeated; 0: once, or Patience.Waiting was called
	Err     error             // of the last try
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("%s is held by %s", e.Path, e.By())
	if e.For > 0 {
		text += fmt.Sprintf(", waited %s", e.For.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// A program chooses its own name, and any user can open a file with many programs.
const (
	mostNames   = 3
	longestName = 64 // characters
)

// By names the programs that hold the file, mostNames of them at most.
func (e *HeldError) By() string {
	if len(e.Holders) == 0 {
		return "a program that Windows does not name"
	}
	var names []string
	for _, h := range e.Holders[:min(mostNames, len(e.Holders))] {
		names = append(names, fmt.Sprintf("%.*s (PID %d)", longestName, h.Name, h.PID))
	}
	if more := len(e.Holders) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more programs", more))
	}
	return strings.Join(names, " and ")
}

func (e *HeldError) Unwrap() error { return e.Err }

// Patience is how a caller waits for files that other programs hold.
type Patience struct {
	Files platform.Files
	Limit time.Duration
	// Waiting, if set, is called once for each wait, when it begins. The caller then measures the time by itself.
	Waiting func(*HeldError)
}

// Rename is like Rename of platform.Files.
func (p Patience) Rename(ctx context.Context, from, to string, replace bool) error {
	return p.Repeat(ctx, func() string {
		if replace && p.Files.CheckHeld(from) == nil {
			return to
		}
		return from
	}, fault.IsHeld, func() error { return p.Files.Rename(from, to, replace) })
}

// Remove is like Remove of platform.Files. It does not wait for a program that runs the file, which may run for months.
func (p Patience) Remove(ctx context.Context, path string) error {
	return p.Repeat(ctx, always(path), isInUse, func() error { return p.Files.Remove(path) })
}

// Open is like Open of platform.Files.
func (p Patience) Open(ctx context.Context, path string) (file io.ReadSeekCloser, err error) {
	err = p.Repeat(ctx, always(path), isInUse, func() error {
		file, err = p.Files.Open(path)
		return err
	})
	return file, err
}

// Await waits until the file can be renamed and removed, as far as other programs allow it. A missing file is no
// error.
func (p Patience) Await(ctx context.Context, path string) error {
	return p.Repeat(ctx, always(path), isInUse, func() error { return ignoreMissing(p.Files.CheckHeld(path)) })
}

// Repeat calls change until it succeeds, its error is not one for which held returns true, or the time is over. Then
// the error is a *HeldError about the file that path returns.
func (p Patience) Repeat(ctx context.Context, path func() string, held func(error) bool, change func() error) error {
	begun := time.Now()
	var last error
	waiting := false
	err := wait.Condition{
		Name: "a file that another program holds", Interval: firstPause, MaxInterval: longestPause, Limit: p.Limit,
		Look: func(context.Context) error {
			last = change()
			if last == nil {
				return nil
			}
			return wait.StopIf(!held(last) || !p.useful(last, path, time.Since(begun)), last)
		},
		Pending: func(state error) {
			if !waiting && p.Waiting != nil {
				p.Waiting(Describe(p.Files, path(), state))
			}
			waiting = true
		},
	}.Wait(ctx)
	if err == nil || ctx.Err() != nil || !held(last) || !waiting {
		return err
	}
	described := Describe(p.Files, path(), last)
	if !isInUse(last) && len(described.Holders) == 0 {
		return last
	}
	if p.Waiting == nil {
		described.For = time.Since(begun)
	}
	return described
}

// useful reports whether it may help to wait on.
func (p Patience) useful(err error, path func() string, waited time.Duration) bool {
	if isInUse(err) || waited < brief {
		return true
	}
	holders, err := p.Files.Holders(path())
	return err == nil && len(holders) > 0
}

// Describe returns err with the names of the programs that hold the file at path now. After a sharing violation,
// these are the programs that have it open: running it shares everything that a rename needs.
func Describe(files platform.Files, path string, err error) *HeldError {
	holders, _ := files.Holders(path) // without the names, the error is still right
	if isInUse(err) {
		holders = slices.DeleteFunc(holders, func(h platform.Holder) bool { return h.Runs })
	}
	return &HeldError{Path: path, Holders: holders, Err: err}
}

func always(path string) func() string { return func() string { return path } }

func isInUse(err error) bool { return errors.Is(err, fault.ErrInUse) }

func ignoreMissing(err error) error {
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	return err
}
