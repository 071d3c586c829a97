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

// A log that was rotated is found again on every file system: on ReFS the lower halves of the IDs of files are equal.
func TestTailContinuesAfterARotation(t *testing.T) {
	for _, refs := range []bool{false, true} {
		m := newMachine(t, simulated.Options{ReFS: refs})
		m.WriteFile(`C:\x.log`, []byte("one\ntwo\n"))
		p := m.Process("agent")
		c := connect(t, p)
		read := func(from *agentv1.TailPlace) (text string, event agentv1.TailEvent, at *agentv1.TailPlace) {
			tail, err := c.files.Tail(t.Context(), &agentv1.TailRequest{Path: `C:\x.log`, Lines: -1, From: from})
			for err == nil {
				var reply *agentv1.TailReply
				if reply, err = tail.Recv(); err == nil {
					text += string(reply.GetData())
					event = max(event, reply.GetEvent())
					at = reply.GetPlace()
				}
			}
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return text, event, at
		}
		_, _, at := read(nil)
		if err := p.Files.Rename(`C:\x.log`, `C:\x.1.log`, false); err != nil {
			t.Fatal(err)
		}
		m.WriteFile(`C:\x.log`, []byte("three\n"))
		if text, event, _ := read(at); strings.Contains(text, "one") || event == agentv1.TailEvent_TAIL_EVENT_LOST {
			t.Errorf("ReFS is %v: after %v, it reads %q with the event %v", refs, at, text, event)
		}
	}
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
