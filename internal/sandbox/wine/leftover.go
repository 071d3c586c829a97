package wine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// If wineserver ends while a process is just starting, the process waits for wineserver for ever:
// wineserver has no record of the process yet and cannot end it. So shutDown lists the processes
// of the prefix first, and kills the processes that are left after the end of wineserver.

// process is a process of this machine. The start time distinguishes it from a later process with
// the same ID.
type process struct {
	pid     int
	started string // in the kernel's ticks since boot; empty: unknown
}

// processes returns the processes of this prefix, which it finds by the environment that they were
// started with. It returns none on a system without /proc.
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

// environment returns the environment that the process was started with, with a zero byte before
// and after each variable. It returns nothing if the process has ended or belongs to another user.
// While a process replaces itself with another program (as the script wine does), it has no
// environment for less than a millisecond, so environment reads again. A zombie or a kernel thread
// never has an environment; environment detects them because they have no program either.
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

// startTime returns the 22nd field of /proc/PID/stat. The second field, the name, is in brackets
// and may contain any character.
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

// end kills the process, unless its ID now belongs to another process.
func (p process) end() {
	if p.started == "" || startTime(p.pid) != p.started {
		return
	}
	if found, err := os.FindProcess(p.pid); err == nil {
		_ = found.Kill() // the process may have ended meanwhile
	}
}
