package qemu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm"
)

// observing returns a fake VM that runs and is observed.
func observing(t *testing.T) (vm.Machine, vm.Observer, func(script string)) {
	t.Helper()
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "observed")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	o, err := d.Observe(t.Context(), m)
	check(t, err)
	t.Cleanup(func() { _ = o.Close() })
	return m, o, fail
}

func TestSignsOfAnInstallation(t *testing.T) {
	_, o, fail := observing(t)
	want := vm.Signs{State: vm.Running, Loaded: 4300, Written: 20}
	fail("reset yes\nscreendump error")
	for resets := range 3 {
		got, err := o.Look(t.Context())
		check(t, err)
		// The event follows the look that provokes it.
		if want.Resets = resets; got.Resets < resets || got.Resets > resets+1 {
			t.Errorf("%d resets were counted, expected %d", got.Resets, resets)
		}
		got.Resets = resets
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("signs (-expected +got):\n%s", diff)
		}
	}
	fail("state io-error\nscreendump error")
	got, err := o.Look(t.Context())
	check(t, err)
	if got.State != vm.Paused || !strings.Contains(got.Reason, "disk is full") {
		t.Errorf("a VM whose disk is full: %+v", got)
	}
	fail("state shutdown\nscreendump error")
	if got, err = o.Look(t.Context()); err != nil || got.State != vm.Running {
		t.Errorf("a VM that is about to end: %+v, %v", got, err)
	}
}

// A question that QEMU refuses or does not answer fails the look, and its death is a state.
func TestALookFails(t *testing.T) {
	for _, command := range []string{"query-status", "query-blockstats", "screendump"} {
		for _, mode := range []string{"error", "hang", "die"} {
			t.Run(command+" "+mode, func(t *testing.T) {
				t.Parallel()
				m, o, fail := observing(t)
				fail(command + " " + mode + "\nscreen no picture")
				ctx := t.Context()
				if mode == "hang" {
					ctx = untilHung(t, m)
				}
				got, err := o.Look(ctx)
				switch {
				case mode == "die":
					eventually(t, "the death is a state", func() bool {
						got, err = o.Look(t.Context())
						return err == nil && got.State == vm.Crashed
					})
				case command == "screendump" && mode == "error": // the other signs suffice
					if err != nil || got.Written != 20 {
						t.Errorf("%+v, %v", got, err)
					}
				case err == nil:
					t.Error("the fault went unnoticed")
				}
			})
		}
	}
}

// An image that leads QEMU to other files is not published, and neither are variables that do.
func TestAHostileImageIsNotPublished(t *testing.T) {
	need(t, "qemu-img")
	d, _ := fakeDriver(t)
	m := fakeRecord(t, d, "hostile")
	check(t, d.Create(t.Context(), m))
	secret := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(secret, make([]byte, 1<<20), 0o600))
	vars := filepath.Join(m.Folder, "vars.qcow2")
	check(t, os.Remove(vars))
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", secret, vars)
	folder := t.TempDir()
	if _, err := d.Publish(t.Context(), m, folder); err == nil {
		t.Error("variables that lead to another file were published")
	}
	over := fakeRecord(t, d, "over")
	over.Image.Vars = vars
	if err := d.Create(t.Context(), over); err == nil {
		t.Error("variables that lead to another file were copied")
	}
	entries, err := os.ReadDir(folder)
	check(t, err)
	if len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}
