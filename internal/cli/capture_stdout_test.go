//go:build linux || darwin

package cli_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
)

// gone is a stdout whose reader closes it after a number of bytes.
type gone struct {
	mu   sync.Mutex
	left int
	err  error // of the writes after that
}

func (g *gone) Write(data []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left -= len(data); g.left < 0 {
		return 0, g.err
	}
	return len(data), nil
}

// If packets cannot be written, the capture ends on every node, swdt reports that once, and leaves no
// files on this machine. If the reader of the packets has closed the pipe, as head does, there is
// nothing to report.
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
			for _, row := range []struct {
				err           error
				code, reports int
			}{{errors.New("the disk is full"), 1, 1}, {&fs.PathError{Op: "write", Err: syscall.EPIPE}, 0, 0}} {
				story := &lines{}
				code := <-w.begin(t.Context(), ui.Streams{Out: &gone{left: 300, err: row.err}, Err: story}, args...)
				reports := strings.Count(story.String(), row.err.Error())
				if code != row.code || reports != row.reports {
					t.Errorf("%v: exit code %d\n%s", row.err, code, story)
				}
			}
			if left, err := filepath.Glob(filepath.Join(temporary, "swdt-scratch-*")); err != nil || len(left) > 0 {
				t.Errorf("left here: %q, %v", left, err)
			}
		})
	}
}
