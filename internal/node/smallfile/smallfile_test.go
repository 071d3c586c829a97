package smallfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const path = `C:\folder\file.conf`

func TestReadReplaceRemove(t *testing.T) {
	n := nodetest.Start(t, "win", simulated.Options{Preset: simulated.Minimal})
	ctx := t.Context()
	if _, err := smallfile.Read(ctx, n.Node, path); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	for _, content := range []string{"one", "another, which is longer", ""} {
		if err := smallfile.Replace(ctx, n.Node, path, []byte(content), ""); err != nil {
			t.Fatal(err)
		}
		if got, err := smallfile.Read(ctx, n.Node, path); err != nil || string(got) != content {
			t.Errorf("read %q, %v", got, err)
		}
	}
	for range 2 {
		if err := smallfile.Remove(ctx, n.Node, path); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := smallfile.Exists(ctx, n.Node, path); err != nil || there {
		t.Errorf("still there: %v", err)
	}
}

// Whichever step fails, the file is the old one or the new one, and no file with a secret is ever
// readable by other users.
func TestReplaceWithAFaultAtEachStep(t *testing.T) {
	n := nodetest.Start(t, "win", simulated.Options{Preset: simulated.Minimal})
	ctx := t.Context()
	for step := 1; ; step++ {
		if err := smallfile.Replace(ctx, n.Node, path, []byte("old"), smallfile.Administrators); err != nil {
			t.Fatal(err)
		}
		seen, failed := 0, false
		n.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Phase != simulated.Before || op.Seq == 0 {
				return simulated.Continue()
			}
			if seen++; seen == step {
				failed = true
				return simulated.Fail(fault.ErrDiskFull)
			}
			if op.Kind == simulated.OpWrite && !restricted(n, op.Target) {
				t.Errorf("%s is written while others may read it", op.Target)
			}
			return simulated.Continue()
		})
		err := smallfile.Replace(ctx, n.Node, path, []byte("new"), smallfile.Administrators)
		n.Machine.OnOperation(nil)
		if !failed {
			if err != nil || step < 5 {
				t.Fatalf("%d steps, %v", step-1, err)
			}
			return
		}
		content, readErr := n.Machine.ReadFile(path)
		switch {
		case err == nil:
			t.Error("no error, want one")
		case readErr != nil:
			t.Error(readErr)
		case string(content) != "old":
			t.Errorf("content is %q, want %q", string(content), "old")
		}
	}
}

func restricted(n *nodetest.Node, path string) bool {
	sddl, err := n.Machine.Process("look").Files.ACL(path)
	return err == nil && strings.Contains(sddl, "D:P") && strings.Count(sddl, "(A;") == 2
}
