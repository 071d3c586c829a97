//go:build linux || darwin

package cli_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
)

// gone is a stdout whose reader closes it after a number of bytes.
type gone struct {
	mu   sync.Mutex
	left int
}

func (g *gone) Write(data []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left -= len(data); g.left < 0 {
		return 0, errors.New("broken pipe")
	}
	return len(data), nil
}

// If the reader of the packets closes the pipe, the capture ends on every node. swdt
// reports that once and leaves no files on this machine.
func TestCaptureEndsWithItsReader(t *testing.T) {
	w := &workplace{t: t, folder: t.TempDir()}
	_, first, _ := simulatedNode(t, "win1", w.folder)
	_, second, _ := simulatedNode(t, "win2", w.folder)
	w.write("swdt.yaml", []byte(first+"---\n"+second))
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for name, args := range map[string][]string{"live": {"capture", "--port", "53"},
		"to a pipe": {"capture", "-w", "-", "--round", "500ms"}} {
		t.Run(name, func(t *testing.T) {
			story := &lines{}
			code := <-w.begin(t.Context(), ui.Streams{Out: &gone{left: 300}, Err: story}, args...)
			if code != 1 || strings.Count(story.String(), "broken pipe") != 1 {
				t.Errorf("exit code %d\n%s", code, story)
			}
			if left, err := filepath.Glob(filepath.Join(temporary, "swdt-scratch-*")); err != nil || len(left) > 0 {
				t.Errorf("left here: %q, %v", left, err)
			}
		})
	}
}
