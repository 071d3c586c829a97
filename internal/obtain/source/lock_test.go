package source_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/obtain/source"
)

// A caller that has given up may remove the lock's folder at once.
func TestALockThatIsNotWantedMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := source.Lock(ctx, path, func() {}); !errors.Is(err, cause) {
			t.Errorf("the error is %v, want %v", err, cause)
		}
		synctest.Wait()
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the lock's file: %v", err)
		}
	})
}
