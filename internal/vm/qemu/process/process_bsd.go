//go:build unix && !linux

package process

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// listLimit bounds a call of ps.
const listLimit = 10 * time.Second

// arguments returns the words of a process's command line; nil if there is none. A word with spaces
// is split into several words, so a mark must have no spaces.
func arguments(pid int) []string {
	ctx, cancel := context.WithTimeout(context.Background(), listLimit)
	defer cancel()
	line, err := exec.CommandContext(ctx, "/bin/ps", "-ww", "-o", "stat=,args=", "-p", strconv.Itoa(pid)).Output()
	words := strings.Fields(string(line))
	if err != nil || len(line) > maxArguments || len(words) < 2 || strings.HasPrefix(words[0], "Z") {
		return nil
	}
	return words[1:]
}

// matching returns the IDs of this user's processes whose command lines have the words of mark.
func matching(mark []string) (pids []int) {
	ctx, cancel := context.WithTimeout(context.Background(), listLimit)
	defer cancel()
	lines, err := exec.CommandContext(ctx, "/bin/ps", "-ww", "-o", "pid=,args=", "-x", "-U", strconv.Itoa(os.Getuid())).Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(lines)) {
		words := strings.Fields(line)
		if len(words) == 0 || !has(words[1:], mark) {
			continue
		}
		if pid, err := strconv.Atoi(words[0]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ending returns false: this system does not report whether a process is ending.
func ending(int) bool { return false }
