//go:build unix && !linux

package process

import (
	"context"
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

// ending returns false: this system does not report whether a process is ending.
func ending(int) bool { return false }
