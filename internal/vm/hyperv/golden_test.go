package hyperv_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/hyperv"
	"github.com/swdt-dev/swdt/internal/vm/hyperv/hypervtest"
)

// TestRequests holds every request of the driver to its script against a golden. A person can read them there, and pass
// them to hyperv.ps1 on a real Hyper-V.
func TestRequests(t *testing.T) {
	h, d := newHost(t)
	m := machine(t, `Größe 8, a=b "c" ${d} it's`)
	m.Folder = filepath.Join(t.TempDir(), "it's $(a) folder")
	m.Image.Base, m.Discs = filepath.Join(t.TempDir(), "o'image.vhdx"), []string{"/iso/it's.iso"}
	check(t, os.WriteFile(m.Image.Base, []byte("image"), 0o600))
	m.Network.Bridge = "‘vSwitch’ (größer)"
	h.change(t, func(h *hypervtest.Host) { h.Switches = append(h.Switches, m.Network.Bridge) })
	ctx := t.Context()
	steps := []struct {
		name string
		run  func() error
	}{
		{"check", func() error { d.Check(ctx, m); return nil }},
		{"create", func() error { return d.Create(ctx, m) }},
		{"start", func() error { return d.Start(ctx, m) }},
		{"status", func() error { _, err := d.Status(ctx, m); return err }},
		{"save", func() error { return d.Save(ctx, m, "it's 1") }},
		{"snapshots", func() error { _, err := d.Snapshots(ctx, m); return err }},
		{"restore", func() error { return d.Restore(ctx, m, "it's 1") }},
		{"remove", func() error { return d.RemoveSnapshot(ctx, m, "it's 1") }},
		{"addresses", func() error { _, err := d.Addresses(ctx, m); return err }},
		{"screenshot", func() error { return d.Screenshot(ctx, m, io.Discard) }},
		{"keys", func() error { return d.SendKeys(ctx, m, []string{"ctrl-alt-delete", "ret"}) }},
		{"restart", func() error { return d.Restart(ctx, m) }},
		{"stop", func() error { return d.Stop(ctx, m) }},
		{"kill", func() error { return errors.Join(d.Start(ctx, m), d.Kill(ctx, m)) }},
		{"delete", func() error { return d.Delete(ctx, m) }},
	}
	var all strings.Builder
	for _, step := range steps {
		h.change(t, func(h *hypervtest.Host) { h.Asked = nil })
		check(t, step.run())
		h.change(t, func(h *hypervtest.Host) {
			fmt.Fprintf(&all, "%s\n\t%s\n", step.name, steady(m, strings.Join(h.Asked, "\n\t")))
		})
	}
	golden(t, all.String())
}

// steady replaces the parts of requests that differ in each run.
func steady(m vm.Machine, text string) string {
	for _, pair := range [][2]string{
		{m.UUID, "UUID"}, {filepath.Dir(m.Folder), "STORE"}, {filepath.Dir(m.Image.Base), "IMAGES"},
	} {
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "ID")
}

func golden(t *testing.T, got string) {
	t.Helper()
	path := filepath.Join("testdata", "requests.txt")
	if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("-update accepts this (-golden +got):\n%s", diff)
	}
}

var _ = flag.Bool("update", false, "write the goldens")

func TestAnotherSystem(t *testing.T) {
	if _, err := os.Stat(`C:\Windows`); err == nil {
		t.Skip("this is Windows")
	}
	d, m, ctx := hyperv.New(hyperv.Options{}), machine(t, "m"), t.Context()
	_, status := d.Status(ctx, m)
	for action, err := range map[string]error{"create": d.Create(ctx, m), "start": d.Start(ctx, m), "status": status} {
		if other, ok := errors.AsType[*hyperv.SystemError](err); !ok || !strings.Contains(other.Error(), "driver: qemu") {
			t.Errorf("%s: %v", action, err)
		}
	}
	problems := d.Check(ctx, m)
	if len(problems) != 1 || !strings.Contains(problems[0].Remedy, "run swdt on Windows") {
		t.Errorf("%+v", problems)
	}
	if _, err := os.Stat(m.Folder); err == nil {
		t.Error("a refused Create has left a folder")
	}
}
