package qemu_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
)

// floodLimit is the size of each file of the serial log in these tests, in bytes.
const floodLimit = 64 << 10

// flooded starts a VM whose guest writes to its serial port without end.
func flooded(t *testing.T, name string) (*qemu.Driver, vm.Machine) {
	t.Helper()
	d := driver(t)
	d.LimitSerialLog(floodLimit)
	m := record(t, d, name)
	m.Image.Base = floodDisk(t)
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	return d, m
}

// logSizes returns the size of the serial log's two files; a missing file has none.
func logSizes(t *testing.T, m vm.Machine) (present, older int64) {
	t.Helper()
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(m.Folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			return 0
		}
		check(t, err)
		return info.Size()
	}
	return size("serial.log"), size("serial.log.1")
}

// A guest that writes to its serial port without end fills two files, and not the user's disk.
func TestAGuestThatFloodsItsSerialPort(t *testing.T) {
	d, m := flooded(t, "flood")
	rounds, last := 0, os.FileInfo(nil)
	eventually(t, "the older file was replaced three times", func() bool {
		if present, older := logSizes(t, m); present > floodLimit || older > floodLimit {
			t.Fatalf("serial.log has %d bytes, serial.log.1 %d: more than %d", present, older, floodLimit)
		}
		info, err := os.Stat(filepath.Join(m.Folder, "serial.log.1"))
		if err == nil && (last == nil || info.ModTime().After(last.ModTime())) {
			rounds, last = rounds+1, info
		}
		return rounds > 3
	})
	check(t, d.Kill(t.Context(), m))
	text, err := os.ReadFile(filepath.Join(m.Folder, "serial.log"))
	if err != nil || bytes.Trim(text, "x") != nil {
		t.Errorf("the log has something else: %.40q, %v", bytes.Trim(text, "x"), err)
	}
	for _, name := range []string{"serial.log", "serial.log.1", "qemu.log"} {
		info, err := os.Stat(filepath.Join(m.Folder, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v: want a file of this user alone", name, info, err)
		}
	}
	leaksNothing(t, m) // the log is complete, and its writer has ended

	m.Image.Base = "" // the next start begins a new log
	check(t, d.Start(t.Context(), m))
	if _, older := logSizes(t, m); older != 0 {
		t.Errorf("serial.log.1 of the earlier run has %d bytes", older)
	}
}

// A VM runs on if the writer of its log is killed.
func TestTheWriterOfALogIsKilled(t *testing.T) {
	d, m := flooded(t, "unlogged")
	for _, writer := range marked(t, filepath.Join(m.Folder, "serial.log")) {
		check(t, writer.Kill())
	}
	// Its cat runs until the limit. Then QEMU has no reader. If the writer was killed between two cats, there is none.
	eventually(t, "the log ends", func() bool {
		present, older := logSizes(t, m)
		return present == floodLimit || present == 0 && older == floodLimit
	})
	var picture bytes.Buffer
	check(t, d.Screenshot(t.Context(), m, &picture))
	if got := state(t, d, m); got != vm.Running {
		t.Errorf("the VM is %s", got)
	}
}

// marked returns the processes whose command line has a word; there is at least one.
func marked(t *testing.T, word string) (found []*os.Process) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(t, err)
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !strings.Contains("\x00"+string(line), "\x00"+word+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		check(t, err)
		process, err := os.FindProcess(pid)
		check(t, err)
		found = append(found, process)
	}
	if len(found) == 0 {
		t.Fatalf("no process has %s in its command line", word)
	}
	return found
}
