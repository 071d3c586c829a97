package process

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
)

// arguments returns the command line of a process; nil if there is none, for example for a process
// that has ended and was not reaped.
func arguments(pid int) []string {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil
	}
	defer file.Close()
	line, err := io.ReadAll(io.LimitReader(file, maxArguments))
	if err != nil || len(line) == 0 {
		return nil
	}
	return strings.Split(string(line), "\x00")
}

// matching returns the IDs of this user's processes whose command lines have the words of mark.
func matching(mark []string) (pids []int) {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1) // the names before an error count, too
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err == nil && has(arguments(pid), mark) && mine(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// mine reports whether this user has started a process. The owner of its folder in /proc does not show that for a
// process that forbids core dumps, as passt does.
func mine(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(status, []byte("\nUid:"))
	fields := bytes.Fields(after)
	return len(fields) > 0 && string(fields[0]) == strconv.Itoa(os.Getuid())
}

// ending reports whether a process has given up its memory, and with it its command line, but has
// not ended yet. A zombie has ended.
func ending(pid int) bool {
	if arguments(pid) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// The state follows the name in parentheses, which may itself have any character.
	_, state, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
	return len(state) > 0 && state[0] != 'Z' && state[0] != 'X'
}
