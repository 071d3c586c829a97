package stackdump_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/stackdump"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// slow is a machine whose containerd waits, after its event, until the test lets it write.
type slow struct {
	*simulated.Machine
	pid       uint32
	path      string
	signalled chan struct{} // closed when containerd is about to write
	write     chan struct{} // close it to let containerd write
}

// withSlowContainerd runs a test with its own clock.
func withSlowContainerd(t *testing.T, test func(t *testing.T, s *slow)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Machine: simulated.New(simulated.Options{}), signalled: make(chan struct{}), write: make(chan struct{})}
		t.Cleanup(s.Close)
		all, err := s.Process("look").Processes.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(all, func(p platform.Process) bool { return p.Name == "containerd.exe" })
		s.pid = all[at].PID
		s.path = fmt.Sprintf(`C:\Windows\Temp\containerd.%d.stacks.log`, s.pid)
		held := false
		s.Interleave(func(o simulated.Operation) {
			if o.PID == s.pid && !held {
				held = true
				close(s.signalled)
				<-s.write
			}
		})
		test(t, s)
	})
}

// read asks for the goroutines.
func (s *slow) read(ctx context.Context) (string, error) {
	var text bytes.Buffer
	_, err := stackdump.Read(ctx, s.Process("agent"), s.pid, time.Now(), func(data []byte) error {
		text.Write(data)
		return nil
	})
	return text.String(), err
}

// stays checks that the agent's file is there, and that an ordinary user cannot take its name.
func (s *slow) stays(t *testing.T) {
	t.Helper()
	if content, err := s.ReadFile(s.path); err != nil || len(content) > 0 {
		t.Errorf("the file has %d bytes, %v", len(content), err)
	}
	user := s.SpawnAs("user.exe", simulated.User).Platform.Files
	if file, err := user.Create(s.path, platform.CreateTruncate); err == nil {
		t.Error("an ordinary user opens the file")
		_ = file.Close()
	}
}

func (s *slow) isGone(t *testing.T) {
	t.Helper()
	if content, err := s.ReadFile(s.path); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("the file is left with %d bytes, %v", len(content), err)
	}
}

// A caller goes away after the event is set. containerd writes later: into the agent's file, which is removed then.
func TestContainerdIsSlowerThanTheCaller(t *testing.T) {
	withSlowContainerd(t, func(t *testing.T, s *slow) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.read(ctx)
			done <- err
		}()
		<-s.signalled
		cancel()
		synctest.Wait()
		s.stays(t)
		close(s.write)
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		s.isGone(t)
	})
}

// containerd does not write in time. Its file stays, and the next dump uses and removes it.
func TestContainerdIsSlowerThanTheAgent(t *testing.T) {
	withSlowContainerd(t, func(t *testing.T, s *slow) {
		_, err := s.read(t.Context())
		var late *stackdump.LateError
		if !errors.As(err, &late) || len(late.Left) != 1 || !strings.EqualFold(late.Left[0], s.path) || !strings.Contains(err.Error(), late.Left[0]) {
			t.Errorf("%v", err)
		}
		s.stays(t)
		if _, err := s.read(t.Context()); !errors.Is(err, fault.ErrInUse) {
			t.Errorf("a second dump, at once: %v", err)
		}
		time.Sleep(time.Minute) // of the test's own clock
		absent := false
		user := s.SpawnAs("user.exe", simulated.User).Platform.Files
		s.Interleave(func(simulated.Operation) {
			_, err := user.Stat(s.path)
			absent = absent || errors.Is(err, fault.ErrNotExist)
			if content, err := s.ReadFile(s.path); err == nil && len(content) > 0 {
				absent = false
				s.Interleave(nil) // from here on the file may be removed
			}
		})
		close(s.write)
		if text, err := s.read(t.Context()); err != nil || !strings.Contains(text, "setupDumpStacks") {
			t.Errorf("a dump a minute later: %v, %.100q", err, text)
		}
		if absent {
			t.Error("there was a moment without the file")
		}
		s.isGone(t)
	})
}

// A process without the event writes nothing, so nothing stays.
func TestAFileWithoutASignalIsRemoved(t *testing.T) {
	withSlowContainerd(t, func(t *testing.T, s *slow) {
		_, err := stackdump.Read(t.Context(), s.Process("agent"), 4, time.Now(), func([]byte) error { return nil })
		if !errors.Is(err, fault.ErrNotExist) {
			t.Error(err)
		}
		s.path = `C:\Windows\Temp\containerd.4.stacks.log`
		s.isGone(t)
	})
}
