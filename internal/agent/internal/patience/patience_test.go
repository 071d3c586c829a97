package patience_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const path = `C:\config\file`

// machine returns a machine with the file, and the view of a process of it.
func machine(t *testing.T) (*simulated.Machine, *platform.Platform) {
	m := simulated.New(simulated.Options{Preset: simulated.Minimal})
	t.Cleanup(m.Close)
	m.WriteFile(path, []byte("text"))
	m.WriteFile(`C:\config\new`, []byte("new"))
	return m, m.Process("agent")
}

func TestAHeldFileIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := machine(t)
		if _, err := m.Spawn("backup.exe").Scan(path); err != nil {
			t.Fatal(err)
		}
		var reports []*patience.HeldError
		for _, waiting := range []func(*patience.HeldError){nil, func(e *patience.HeldError) { reports = append(reports, e) }} {
			patient := patience.Patience{Files: p.Files, Limit: patience.Short, Waiting: waiting}
			for name, change := range map[string]func() error{
				"rename":  func() error { return patient.Rename(t.Context(), path, `C:\config\moved`, false) },
				"replace": func() error { return patient.Rename(t.Context(), `C:\config\new`, path, true) },
				"remove":  func() error { return patient.Remove(t.Context(), path) },
				"await":   func() error { return patient.Await(t.Context(), path) },
			} {
				begun := time.Now()
				var held *patience.HeldError
				err := change()
				if !errors.As(err, &held) || held.Path != path || len(held.Holders) != 1 || !fault.IsHeld(err) {
					t.Fatalf("%s: %v", name, err)
				}
				if waited := time.Since(begun); waited != patience.Short {
					t.Errorf("%s: it waited %v, want %v", name, waited, patience.Short)
				}
				if measured := waiting == nil; (held.For > 0) != measured {
					t.Errorf("%s: the error has the time %v; the caller measures it: %v", name, held.For, !measured)
				}
			}
		}
		if len(reports) != 4 {
			t.Errorf("Waiting was called %d times, want once for each wait", len(reports))
		}
	})
}

// "Access denied" for a file that no process has open is a matter of access lists: waiting does not help.
func TestDeniedAccessIsNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := machine(t)
		m.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpRename && op.Phase == simulated.Before {
				return simulated.Fail(fault.ErrPermission)
			}
			return simulated.Continue()
		})
		begun := time.Now()
		err := patience.Patience{Files: p.Files, Limit: patience.Long}.Rename(t.Context(), path, `C:\config\moved`, false)
		var held *patience.HeldError
		if !errors.Is(err, fault.ErrPermission) || errors.As(err, &held) {
			t.Errorf("the error is %v, want the denied access alone", err)
		}
		if waited := time.Since(begun); waited > 3*time.Second {
			t.Errorf("it waited %v", waited)
		}
	})
}

func TestOtherErrorsAndEndsAreNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := machine(t)
		patient := patience.Patience{Files: p.Files, Limit: patience.Long}
		begun := time.Now()
		if err := patient.Remove(t.Context(), `C:\config\none`); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("a missing file: %v", err)
		}
		if err := patient.Await(t.Context(), `C:\config\none`); err != nil {
			t.Errorf("a missing file: %v", err)
		}
		if _, err := m.Spawn("backup.exe").Scan(path); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := patient.Remove(ctx, path); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v", err)
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("it waited %v", waited)
		}
	})
}

// An ordinary user of the node holds the file with many programs of long names.
func TestTheNamesOfHoldersAreBounded(t *testing.T) {
	m, p := machine(t)
	for range 200 {
		user := m.SpawnAs(strings.Repeat("é", 500), simulated.User)
		if _, err := user.Scan(path); err != nil {
			t.Fatal(err)
		}
	}
	err := patience.Describe(p.Files, path, fault.ErrInUse)
	if text := err.Error(); len(text) > 1000 || !strings.Contains(text, "197 more programs") {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}
