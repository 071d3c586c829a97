// Package controlplanetest starts real control planes for tests.
package controlplanetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
)

// Start starts a control plane that ends with the test. Without Binaries and State in the options, it uses
// the lab's programs and a new folder. It skips the test if this machine cannot run a control plane, or if
// one of the needed files is missing; if SWDT_LAB_CLUSTER is "required", it fails the test instead.
func Start(t testing.TB, o controlplane.Options, needed ...string) *controlplane.ControlPlane {
	t.Helper()
	if o.Binaries == "" {
		o.Binaries = Binaries(t)
	}
	if err := here(o.Binaries, needed); err != nil {
		if os.Getenv("SWDT_LAB_CLUSTER") == "required" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if o.State == "" {
		o.State = folder(t)
	}
	plane, err := controlplane.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return plane
}

// Binaries returns the folder of the lab's programs.
func Binaries(t testing.TB) string {
	t.Helper()
	binaries, err := controlplane.DefaultBinaries()
	if err != nil {
		t.Fatal(err)
	}
	return binaries
}

// Lab returns the path of a file of the lab beside its programs, such as networks.
func Lab(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(filepath.Dir(Binaries(t)), name)
}

func here(binaries string, needed []string) error {
	if err := controlplane.Check(binaries); err != nil {
		return err
	}
	for _, file := range needed {
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	return nil
}

// folder returns a new folder with a short path, which ends with the test.
func folder(t testing.TB) string {
	t.Helper()
	state, err := os.MkdirTemp("", "swdt-control-plane-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(state); err != nil {
			t.Error(err)
		}
	})
	return state
}
