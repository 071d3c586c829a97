package qemu_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qcow2"
)

// Another account that can write the folder of an image could replace it, after the check and before QEMU opens it.
func TestAnImageThatAnotherAccountCanReplace(t *testing.T) {
	need(t, "qemu-img")
	d, _ := fakeDriver(t)
	m := fakeRecord(t, d, "shared")
	shared := t.TempDir()
	m.Image.Base = filepath.Join(shared, "image.qcow2")
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", m.Image.Base, "1M")
	refused := func(what string, err error) {
		t.Helper()
		if foreign, ok := errors.AsType[*localfile.ForeignError](err); !ok || foreign.Path != shared {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	check(t, os.Chmod(shared, 0o777))
	refused("create", d.Create(t.Context(), m))
	check(t, os.Chmod(shared, 0o700))
	check(t, d.Create(t.Context(), m))
	check(t, os.Chmod(shared, 0o777))
	refused("start", d.Start(t.Context(), m))
	refused("save", d.Save(t.Context(), m, "x"))
}

// An image that leads QEMU to other files of your machine is refused: when a VM is made,
// and at every later start, since the file may have been replaced.
func TestAHostileImage(t *testing.T) {
	d := driver(t)
	folder := t.TempDir()
	secret, good := filepath.Join(folder, "secret"), filepath.Join(folder, "good")
	write(t, secret, strings.Repeat("root:$6$secret\n", 4096))
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", good, "1M")
	hostile := map[string][]string{
		"backing":  {"-u", "-F", "raw", "-b", secret},
		"protocol": {"-u", "-F", "raw", "-b", `json:{"driver":"file","filename":"` + secret + `"}`},
		"network":  {"-u", "-F", "raw", "-b", "nbd://127.0.0.1:1/x"},
		"data":     {"-o", "data_file=" + filepath.Join(folder, "raw-data")},
	}
	images := map[string]error{secret: qcow2.ErrFormat, folder: qcow2.ErrFormat}
	for name, options := range hostile {
		path := filepath.Join(folder, name)
		tool(t, "qemu-img", append(append([]string{"create", "-q", "-f", "qcow2"}, options...), path, "1M")...)
		images[path] = qcow2.ErrUnsafe
	}
	for path, expected := range images {
		m := record(t, d, "hostile")
		m.Image.Base = path
		if err := d.Create(t.Context(), m); !errors.Is(err, expected) {
			t.Errorf("%s: create: %v", filepath.Base(path), err)
		}
		if got := state(t, d, m); got != vm.Absent {
			t.Errorf("%s: the VM is %s", filepath.Base(path), got)
		}
		m.Image.Base = good
		check(t, d.Create(t.Context(), m))
		check(t, d.Save(t.Context(), m, "before"))
		m.Image.Base = path // as if the file had been replaced
		for action, do := range map[string]func() error{
			"start":   func() error { return d.Start(t.Context(), m) },
			"save":    func() error { return d.Save(t.Context(), m, "x") },
			"restore": func() error { return d.Restore(t.Context(), m, "before") },
		} {
			if err := do(); !errors.Is(err, expected) {
				t.Errorf("%s: %s: %v", filepath.Base(path), action, err)
			}
		}
	}
	for _, relative := range []string{"good", "json:{}", "nbd:localhost:1"} {
		m := record(t, d, "relative")
		m.Image.Base = relative
		if d.Create(t.Context(), m) == nil {
			t.Errorf("%s was taken", relative)
		}
	}
}

// The image that a disk is laid over is never written.
func TestTheImageIsNeverWritten(t *testing.T) {
	need(t, "qemu-io")
	d := driver(t)
	m := record(t, d, "overlay")
	m.Image.Base = guestDisk(t)
	before, err := os.ReadFile(m.Image.Base)
	check(t, err)
	check(t, os.Chmod(m.Image.Base, 0o400))
	check(t, d.Create(t.Context(), m))
	tool(t, "qemu-io", "-f", "qcow2", "-c", "write -P 7 0 1M", filepath.Join(m.Folder, "disk.qcow2"))
	check(t, d.Start(t.Context(), m))
	check(t, d.Save(t.Context(), m, "live"))
	check(t, d.Kill(t.Context(), m))
	if after, err := os.ReadFile(m.Image.Base); err != nil || string(after) != string(before) {
		t.Errorf("the image has changed (%v)", err)
	}
}

// Another user of your machine can open nothing of a VM: its folder lets only its owner
// in, and what is in it would not help either.
func TestAnotherUserIsKeptOut(t *testing.T) {
	d := driver(t)
	m := record(t, d, "private")
	m.Firmware.TPM = true
	check(t, os.MkdirAll(m.Folder, 0o755)) //nolint:gosec // a careless folder
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	check(t, d.Save(t.Context(), m, "live"))
	seen := 0
	check(t, filepath.WalkDir(m.Folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if seen++; info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return nil
	}))
	if seen < 15 {
		t.Errorf("looked at %d files only", seen)
	}
}

// A folder for sockets that another user has made, or a link, is not used.
func TestAPlantedFolderOfSockets(t *testing.T) {
	d, _ := fakeDriver(t)
	long := strings.Repeat("x", 100)
	for name, plant := range map[string]func(run string) error{
		"link": func(run string) error { return os.Symlink(t.TempDir(), filepath.Join(run, "swdt")) },
		"file": func(run string) error { return os.WriteFile(filepath.Join(run, "swdt"), nil, 0o600) },
		"rights": func(run string) error {
			planted := filepath.Join(run, "swdt")
			return errors.Join(os.Mkdir(planted, 0o700), os.Chmod(planted, 0o777)) //nolint:gosec // planted
		},
		"owner": func(run string) error {
			if os.Getuid() != 0 {
				return plantedElsewhere(run)
			}
			return errors.Join(os.Mkdir(filepath.Join(run, "swdt"), 0o700), os.Chown(filepath.Join(run, "swdt"), 65534, 65534))
		},
	} {
		run := shortTemp(t)
		check(t, plant(run))
		t.Setenv("XDG_RUNTIME_DIR", run)
		m := fakeRecord(t, d, "planted")
		m.Folder = filepath.Join(m.Folder, long)
		t.Cleanup(func() { check(t, errors.Join(d.Kill(context.Background(), m), d.Delete(context.Background(), m))) })
		check(t, d.Create(t.Context(), m))
		check(t, d.Start(t.Context(), m))
		consoles, err := d.Consoles(t.Context(), m)
		check(t, err)
		if strings.HasPrefix(consoles[0].Address, run) {
			t.Errorf("%s: the sockets are at %s", name, consoles[0].Address)
		}
	}
}

// plantedElsewhere stands for a folder of another user, which only root can make.
func plantedElsewhere(run string) error { return os.WriteFile(filepath.Join(run, "swdt"), nil, 0o600) }

// QEMU gets no variable that may hold a secret.
func TestSecretsStayHere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	t.Setenv("NODE_PASSWORD", "correct horse")
	d := driver(t)
	m := record(t, d, "secrets")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	status, err := d.Status(t.Context(), m)
	check(t, err)
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(status.PID), "environ"))
	check(t, err)
	if strings.Contains(string(content), "correct horse") || !strings.Contains(string(content), "PATH=") {
		t.Errorf("QEMU's environment: %q", content)
	}
	process := filepath.Join("/proc", strconv.Itoa(status.PID), "status")
	filters, err := exec.CommandContext(t.Context(), "grep", "Seccomp:", process).Output()
	if err != nil || strings.TrimSpace(strings.TrimPrefix(string(filters), "Seccomp:")) != "2" {
		t.Errorf("QEMU has no seccomp filter: %q, %v", filters, err)
	}
}
