package qemu

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
)

// checkMemory compares the VM's memory with the free memory of your machine.
func checkMemory(_ context.Context, m vm.Machine) []finding.Problem {
	free, known := availableMemory()
	if !known || m.Memory <= free {
		return nil
	}
	return []finding.Problem{problem("memory", finding.Warning, "your machine has less free memory than the VM wants",
		"give the VM less memory, or end other programs",
		fmt.Sprintf("%s are free, the VM wants %s", ui.Size(free), ui.Size(m.Memory)))}
}

// availableMemory returns the bytes of memory that programs can still use, and whether this number
// is known. It is known on Linux only.
func availableMemory() (int64, bool) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return 0, false
	}
	return parseMemory(string(content))
}

// parseMemory reads the line "MemAvailable:   23603000 kB".
func parseMemory(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "MemAvailable:" {
			kilobytes, err := strconv.ParseInt(words[1], 10, 64)
			return kilobytes << 10, err == nil && kilobytes >= 0 && kilobytes < 1<<50
		}
	}
	return 0, false
}
