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

// arguments returns the words of a process's command line; nil if there is none. Words
// with spaces are split: a mark must have none.
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

// ending returns false: this system does not show it.
func ending(int) bool { return false }
