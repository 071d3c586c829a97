package qemu_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/vm"
)

// An exported disk has the content of the whole chain, and needs no other file.
func TestExport(t *testing.T) {
	d := driver(t)
	m := overPattern(t, record(t, d, "export"))
	if err := d.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for _, format := range []vm.DiskFormat{vm.QCOW2, vm.VHDX} {
		file := filepath.Join(t.TempDir(), "out."+string(format))
		room, err := d.Room(t.Context(), m, format)
		if err != nil {
			t.Fatal(err)
		}
		last := -1.0
		err = d.Export(t.Context(), m, file, format, func(fraction float64) {
			if fraction < last {
				t.Errorf("the progress goes from %v back to %v", last, fraction)
			}
			last = fraction
		})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if info.Size() > room {
			t.Errorf("%s: %d bytes, and at most %d were announced", format, info.Size(), room)
		}
		if last != 1 {
			t.Errorf("%s: progress ends with %v, want 1", format, last)
		}
		tool(t, "qemu-img", "check", "-q", "-f", string(format), file)
		tool(t, "qemu-img", "compare", "-q", "-f", string(format), "-F", "qcow2", file, m.Image.Base)
		if text := tool(t, "qemu-img", "info", "--output=json", file); strings.Contains(text, "backing") {
			t.Errorf("%s needs another file: %s", format, text)
		}
	}
}

// An image that leads to another file gains nothing, also if it takes the place of one that was
// checked when the VM was created.
func TestExportOverAnImageThatLeadsElsewhere(t *testing.T) {
	d := driver(t)
	m := overPattern(t, record(t, d, "hostile"))
	if err := d.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(t.TempDir(), "private")
	if err := os.WriteFile(private, bytes.Repeat([]byte("private "), 8<<20/8), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(m.Image.Base); err != nil {
		t.Fatal(err)
	}
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", "-b", private, "-F", "raw", m.Image.Base,
		strconv.FormatInt(m.Disk, 10))
	file := filepath.Join(t.TempDir(), "out.qcow2")
	if err := d.Export(t.Context(), m, file, vm.QCOW2, func(float64) {}); err == nil {
		t.Error("it was exported")
	}
	if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte("private")) {
		t.Error("the export has the other file's content")
	}
}

// overPattern returns m with an image that has content.
func overPattern(t *testing.T, m vm.Machine) vm.Machine {
	t.Helper()
	folder := t.TempDir()
	raw := filepath.Join(folder, "raw")
	content := make([]byte, m.Disk)
	copy(content[1<<20:], bytes.Repeat([]byte("content "), 1<<18))
	if err := os.WriteFile(raw, content, 0o600); err != nil {
		t.Fatal(err)
	}
	m.Image.Base = filepath.Join(folder, "base,with comma.qcow2")
	tool(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, m.Image.Base)
	return m
}
