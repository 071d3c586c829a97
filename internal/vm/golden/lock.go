package golden

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	lockFolder = ".locks"
	// lockInterval is the pause between two attempts to take a lock. quietLooks is the number of
	// failed attempts after which the wait is reported.
	lockInterval = 100 * time.Millisecond
	quietLooks   = 10
	// lockLimit bounds the wait for a build, which takes hours without acceleration.
	lockLimit = 12 * time.Hour
	// removeLimit bounds how long Remove waits for the lock.
	removeLimit = 2 * time.Second
)

// lock takes the lock of an image. It waits at most limit for another swdt that has the lock, for
// example because that swdt builds the same image. Closing the returned file releases the lock.
func (s *Images) lock(ctx context.Context, key string, limit time.Duration, r ui.Reporter) (*os.File, error) {
	path := filepath.Join(s.root, lockFolder, key)
	if err := privateFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("lock image %s: %w", key, err)
	}
	var file *os.File
	looks := 0
	err := wait.Condition{
		Name: "the lock of image " + key, Interval: lockInterval, Limit: limit,
		Look: func(context.Context) (err error) {
			file, err = localfile.Claim(path)
			if looks++; looks == quietLooks && errors.Is(err, localfile.ErrClaimed) {
				r.Info("another swdt%s works on golden image %s: waiting for it", holder(path), key)
			}
			return wait.StopIf(err != nil && !errors.Is(err, localfile.ErrClaimed), err)
		},
	}.Wait(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, localfile.ErrClaimed):
		return nil, fmt.Errorf("another swdt%s works on golden image %s; wait for it or end it, then try again",
			holder(path), key)
	case err != nil:
		return nil, fmt.Errorf("lock image %s: %w", key, err)
	}
	if file.Truncate(0) == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0) // other swdt processes print this number in messages
	}
	return file, nil
}

// holder returns " (process N)" for the process N that has a lock, or "" if the process is not
// known.
func holder(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if pid, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && pid > 0 {
		return fmt.Sprintf(" (process %d)", pid)
	}
	return ""
}
