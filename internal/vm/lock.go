package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// lockLimit bounds the wait for another command that works on the same VM.
	lockLimit = 15 * time.Second
	// lockInterval is the time between two looks at a lock.
	lockInterval = 50 * time.Millisecond
)

// Holder is the command that works on a VM.
type Holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"` // swdt vm stop
	Since   time.Time `json:"since"`
}

// BusyError reports that another command works on the VM.
type BusyError struct {
	Name   string
	Holder *Holder // nil if the command is not known
}

func (e *BusyError) Error() string {
	if e.Holder == nil {
		return fmt.Sprintf("another swdt works on VM %s; wait for it, then try again", e.Name)
	}
	return fmt.Sprintf("VM %s is in use by `%s` (process %d) since %s; wait for it or end it, then try again",
		e.Name, e.Holder.Command, e.Holder.PID, e.Holder.Since.Local().Format(time.TimeOnly))
}

// lock is the lock of one VM, held by this process.
type lock struct {
	file *os.File
	path string
}

// lock takes the lock of a VM. If another command holds it for longer than limit, the error is a
// *BusyError. With limit 0, lock tries once.
func (s *Store) lock(ctx context.Context, name, command string, limit time.Duration) (*lock, error) {
	path := s.lockPath(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock VM %s: %w", name, err)
	}
	l := &lock{path: path}
	take := func(context.Context) (err error) {
		l.file, err = localfile.Claim(path)
		return wait.StopIf(err != nil && !errors.Is(err, localfile.ErrClaimed), err)
	}
	if limit == 0 {
		limit = time.Nanosecond // with Limit 0, a wait.Condition has no limit; it always tries once
	}
	err := wait.Condition{Name: "VM " + name, Interval: lockInterval, Limit: limit, Look: take}.Wait(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), busy(name, path))
	case errors.Is(err, localfile.ErrClaimed):
		return nil, busy(name, path)
	case err != nil:
		return nil, fmt.Errorf("lock VM %s: %w", name, err)
	}
	l.sign(Holder{PID: os.Getpid(), Command: command, Since: time.Now()})
	return l, nil
}

// sign writes the holder into the lock's file, for the messages of other commands. If the write
// fails, these messages do not name the holder.
func (l *lock) sign(h Holder) {
	text, err := json.Marshal(h)
	if err != nil {
		return
	}
	if l.file.Truncate(0) == nil {
		_, _ = l.file.WriteAt(text, 0)
	}
}

func (l *lock) unlock() {
	_ = l.file.Truncate(0)
	_ = l.file.Close()
}

// remove releases the lock and removes its file. The caller must have deleted the VM before.
func (l *lock) remove() {
	_ = os.Remove(l.path) // fails on Windows while the file is open; a file that stays does no harm
	l.unlock()
}

func busy(name, path string) *BusyError {
	e := &BusyError{Name: name}
	file, err := os.Open(path)
	if err != nil {
		return e
	}
	defer file.Close()
	var holder Holder
	if json.NewDecoder(io.LimitReader(file, 4096)).Decode(&holder) == nil && holder.PID != 0 {
		e.Holder = &holder
	}
	return e
}
