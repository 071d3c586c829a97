package agent_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

// scanAt lets a scanner open a file before the first operation of a kind on a target.
func scanAt(m *simulated.Machine, kind simulated.Kind, target string, path func() string, d time.Duration) {
	m.ScanBefore(func(op simulated.Operation) bool { return op.Kind == kind && op.Target == target }, path, d)
}

// A scanner opens the agent's copy as soon as it is written, before it gets its name.
func TestInstallWaitsForAScanner(t *testing.T) {
	for _, d := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 20 * time.Second, 90 * time.Second} {
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newInstaller(t)
				copied := func() string {
					for path := range i.Snapshot(i.path()[:strings.LastIndex(i.path(), `\`)]) {
						if strings.HasSuffix(path, ".tmp") {
							return path
						}
					}
					return ""
				}
				scanAt(i.Machine, simulated.OpRename, i.path(), copied, d)

				result := i.install(t)

				if d < 30*time.Second {
					if result.Failure != "" {
						t.Fatalf("%s: %s", result.Failure, result.Message)
					}
					i.isSafe(t)
					return
				}
				if !strings.Contains(result.Message, "MsMpEng.exe (PID ") || !strings.Contains(result.Message, "waited 30s") {
					t.Errorf("the message is %q, want the holder and the time", result.Message)
				}
			})
		})
	}
}

// A person waits for a rename or a removal by hand, so the agent's patience is shorter.
func TestRenameAndRemoveWaitForAScanner(t *testing.T) {
	for _, d := range []time.Duration{3 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
			put(t, m, `C:\config\a`, []byte("old"))
			put(t, m, `C:\config\new`, []byte("new"))
			c := connect(t, m.Process("agent"))
			fixed := func(path string) func() string { return func() string { return path } }
			check := func(what string, err error) {
				t.Helper()
				if d < 5*time.Second && err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if d > 5*time.Second && (!fault.IsHeld(rpcerror.FromStatus(err)) || !strings.Contains(err.Error(), "MsMpEng.exe")) {
					t.Errorf("%s: %v, want an error that names the holder", what, err)
				}
			}
			scanAt(m, simulated.OpRename, `C:\config\a`, fixed(`C:\config\a`), d)
			_, err := c.files.Rename(t.Context(), &agentv1.RenameRequest{From: `C:\config\new`, To: `C:\config\a`, Replace: true})
			check("replace", err)
			timer := time.NewTimer(d)
			<-timer.C
			scanAt(m, simulated.OpRemove, `C:\config\a`, fixed(`C:\config\a`), d)
			_, err = c.files.Remove(t.Context(), &agentv1.RemoveRequest{Path: `C:\config`, Recursive: true})
			check("remove", err)
		})
	}
}

// Programs that run a file may run for months: nothing waits for them.
func TestARunningProgramIsNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, simulated.Options{})
		c := connect(t, m.Process("agent"))
		begun := time.Now()
		_, err := c.files.Remove(t.Context(), &agentv1.RemoveRequest{Path: `C:\k\kubelet.exe`})
		if !errors.Is(rpcerror.FromStatus(err), fault.ErrPermission) {
			t.Errorf("the error is %v, want %v", err, fault.ErrPermission)
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("the agent waited %v", waited)
		}
	})
}
