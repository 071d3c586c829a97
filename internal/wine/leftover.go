package wine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// A process that is just starting when wineserver ends waits for it for ever:
// wineserver does not know it yet and cannot end it. So whoever ends a prefix
// looks for its processes, and afterwards ends those that are left.

// process is one process of this machine; the start time tells it from another
// that has its number later.
type process struct {
	pid     int
	started string // in the kernel's ticks since boot; empty: not known
}

// processes are those started for this prefix, by the environment they were
// given. Where there is no /proc there are none to be found.
func (p *Prefix) processes() []process {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	mark := []byte("\x00WINEPREFIX=" + p.folder + "\x00")
	var found []process
	for _, folder := range folders {
		if !bytes.Contains(environment(folder), mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		found = append(found, process{pid, startTime(pid)})
	}
	return found
}

// environment is what the process was started with, a zero before and after
// each variable; nothing for one that has gone or is another user's. One that
// is just replacing itself by another program (the script wine does) has none
// for less than a millisecond, unlike a zombie or kernel thread, which has no
// program either.
func environment(folder string) []byte {
	const patience = 1000
	for range patience {
		environment, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err == nil && len(environment) > 0 {
			return append([]byte{0}, environment...)
		}
		if _, linkErr := os.Readlink(filepath.Join(folder, "exe")); err != nil || linkErr != nil {
			return nil
		}
	}
	return nil
}

// startTime is the 22nd field of /proc/PID/stat; the second, the name, is in
// brackets and may have anything in it.
func startTime(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return string(fields[19])
}

// end kills a process that is still the one that was found.
func (p process) end() {
	if p.started == "" || startTime(p.pid) != p.started {
		return
	}
	if found, err := os.FindProcess(p.pid); err == nil {
		_ = found.Kill() // gone meanwhile
	}
}
