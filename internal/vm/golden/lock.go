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
	// lockInterval is the pause between two looks at a lock, and quietLooks how many fail
	// before the wait is reported.
	lockInterval = 100 * time.Millisecond
	quietLooks   = 10
	// lockLimit bounds the wait for a build, which takes hours without acceleration.
	lockLimit = 12 * time.Hour
	// removeLimit bounds the wait of a removal.
	removeLimit = 2 * time.Second
)

// lock takes the lock of an image, and waits for another swdt that has it, such as to
// build the same image. Closing the file unlocks.
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
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0) // for the messages of others only
	}
	return file, nil
}

// holder returns the process that has a lock in words, or "".
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
