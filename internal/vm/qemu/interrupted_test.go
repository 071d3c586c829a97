package qemu_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/testing/cases"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
)

// interruption is a point at which a swdt that works on a VM is killed.
type interruption struct {
	method string // of the driver, in which swdt is killed
	at     string // tpm and network: before that program runs; else a line of the fake QEMU's script
	next   string // what the next swdt does
}

// A swdt that is killed at any step of a start or a stop leaves no process that the next swdt does not know: the state
// of the VM is true, and a start, a stop or a removal succeeds.
func TestKilledAtEachStepOfStartAndStop(t *testing.T) {
	need(t, "qemu-img", "swtpm", "pasta", "passt")
	var all []interruption
	for _, next := range []string{"start", "stop", "delete"} {
		for method, points := range map[string][]string{
			"start": {
				"tpm", "network", "start kill", "listen kill", "qmp_capabilities kill", "set_password kill", "query-status kill",
			},
			"stop": {"query-status kill", "query-chardev kill", "system_powerdown kill"},
			"kill": {"qmp_capabilities kill", "quit kill"},
		} {
			for _, at := range points {
				all = append(all, interruption{method, at, next})
			}
		}
	}
	slices.SortFunc(all, func(a, b interruption) int { return strings.Compare(a.String(), b.String()) })
	for _, at := range cases.Of(t, all, 6) {
		t.Run(at.String(), at.test)
	}
}

func (at interruption) String() string { return at.method + " at " + at.at + ", then " + at.next }

func (at interruption) test(t *testing.T) {
	folder := t.TempDir()
	d, script, options := killableDriver(t, folder)
	m := fakeRecord(t, d, "killed")
	m.Firmware.TPM, m.Network.Isolated, m.Display = true, false, vm.DisplayPort
	check(t, d.Create(t.Context(), m))
	if at.method != "start" {
		check(t, d.Start(t.Context(), m))
	}
	script(at.at)
	switch at.at {
	case "tpm":
		options.TPM = killing(t, folder, "swtpm")
	case "network":
		options.Outbound = killing(t, folder, "pasta")
	}
	swdt := act{Method: at.method, Options: options, Machine: m}.in(t)
	in, err := swdt.StdinPipe() // it begins once its number is written
	check(t, err)
	check(t, swdt.Start())
	check(t, os.WriteFile(filepath.Join(folder, "swdt.pid"), []byte(strconv.Itoa(swdt.Process.Pid)), 0o600))
	check(t, in.Close())
	if err := swdt.Wait(); err == nil || swdt.ProcessState.ExitCode() != -1 {
		t.Fatalf("swdt was not killed: %v", err)
	}

	got := state(t, d, m)
	if n := len(qemusOf(t, m)); n > 1 || n == 1 && got != vm.Running && got != vm.Paused {
		t.Errorf("%d QEMUs run, and the VM is %s", n, got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	switch at.next {
	case "start":
		script("go on")
		if got = state(t, d, m); got != vm.Running {
			check(t, d.Start(ctx, m))
		}
		if got = state(t, d, m); got != vm.Running || len(qemusOf(t, m)) != 1 {
			t.Errorf("after the next start: %s, QEMUs: %q", got, qemusOf(t, m))
		}
		if consoles, err := d.Consoles(ctx, m); err != nil || len(consoles) == 0 {
			t.Errorf("the consoles: %v, %v", consoles, err)
		} else if _, err := os.Stat(consoles[0].PasswordFile); err != nil {
			t.Error(err)
		}
		check(t, d.Kill(ctx, m))
	case "stop":
		script("go on")
		check(t, d.Stop(ctx, m))
	case "delete": // also if QEMU does not listen yet
		check(t, d.Kill(ctx, m))
		check(t, d.Delete(ctx, m))
	}
	if got, want := state(t, d, m), map[bool]vm.State{true: vm.Absent, false: vm.Stopped}[at.next == "delete"]; got != want {
		t.Errorf("the VM is %s, want %s", got, want)
	}
	leaksNothing(t, m)
	if left, err := filepath.Glob(filepath.Join(m.Folder, "run")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// killableDriver is like fakeDriver, and returns also the options of a swdt that the test kills.
func killableDriver(t *testing.T, folder string) (*qemu.Driver, func(string), qemu.Options) {
	t.Helper()
	program := filepath.Join(folder, fakeName)
	binary, err := os.Executable()
	check(t, err)
	check(t, os.Symlink(binary, program))
	script := func(text string) { check(t, os.WriteFile(filepath.Join(folder, "script"), []byte(text), 0o600)) }
	script("")
	options := qemu.Options{QEMU: program, Cache: folder, Firmware: []string{"/usr/share/qemu/firmware"}}
	return qemu.New(options), script, options
}

// killing returns the path of a program that kills swdt, and then is another program.
func killing(t *testing.T, folder, name string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	text := "#!/bin/sh\npid=$(cat '" + filepath.Join(folder, "swdt.pid") + "')\nkill -9 \"$pid\"\nexec " + name + ` "$@"` + "\n"
	check(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

// qemusOf returns the command lines of a VM's QEMUs.
func qemusOf(t *testing.T, m vm.Machine) (all []string) {
	t.Helper()
	for _, line := range processesOf(t, m) {
		if strings.Contains(line, "-uuid "+m.UUID) {
			all = append(all, line)
		}
	}
	return all
}
