package agent_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// lockedFiles has files that another process has locked except for the
// beginning.
type lockedFiles struct{ platform.Files }

func (f lockedFiles) Open(path string) (io.ReadSeekCloser, error) {
	file, err := f.Files.Open(path)
	return lockedFile{file}, err
}

type lockedFile struct{ io.ReadSeekCloser }

func (f lockedFile) Read(p []byte) (int, error) {
	if len(p) > 2 {
		return 0, errors.New("another process has locked it")
	}
	return f.ReadSeekCloser.Read(p)
}

// A log that cannot be read must not look like an empty log.
func TestTailOfWhatCannotBeRead(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	m.WriteFile(`C:\x.log`, []byte("one\ntwo\n"))
	h := *m.Process("agent")
	h.Files = lockedFiles{h.Files}
	c := connect(t, &h)
	tail, err := c.files.Tail(t.Context(), &agentv1.TailRequest{Path: `C:\x.log`, Lines: -1})
	for err == nil {
		_, err = tail.Recv()
	}
	if !strings.Contains(err.Error(), "another process has locked it") {
		t.Errorf("it ends with: %v", err)
	}
}
