//go:build swdtpause

package swap

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
)

// holdFile has the state in which the transaction stays while the file exists. The test that wrote it kills
// processes meanwhile, and then removes it.
const holdFile = `C:\swdt-hold.txt`

func afterRecord() {
	const limit = 2 * time.Minute // for a test that has ended
	// If the limit has passed, the transaction goes on.
	_ = wait.Condition{Name: "the test to strike", Interval: 10 * time.Millisecond, Limit: limit,
		Look: func(context.Context) error {
			if isHeld() {
				return errors.New("it holds the transaction")
			}
			return nil
		}}.Wait(context.Background())
}

func isHeld() bool {
	state, err := os.ReadFile(holdFile)
	if err != nil {
		return false
	}
	journals, _ := filepath.Glob(`C:\ProgramData\swdt\journal\*.jsonl`) // the pattern is valid
	for _, path := range journals {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(`"state":"`+string(state)+`"`)) {
			return true
		}
	}
	return false
}
