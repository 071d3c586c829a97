package process

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// arguments returns the command line of a process; nil if there is none, as for a process
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
