package qemu

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
)

// checkMemory compares the VM's memory with what is free on your machine.
func checkMemory(_ context.Context, m vm.Machine) []finding.Problem {
	free, known := availableMemory()
	if !known || m.Memory <= free {
		return nil
	}
	return []finding.Problem{problem("memory", finding.Warning, "your machine has less free memory than the VM wants",
		"give the VM less memory, or end other programs",
		fmt.Sprintf("%s are free, the VM wants %s", ui.Size(free), ui.Size(m.Memory)))}
}

// availableMemory returns the bytes of memory that programs can still use, on Linux.
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

// checkNetwork checks the bridge and the tap, which swdt or a person has made.
func checkNetwork(_ context.Context, m vm.Machine) []finding.Problem {
	if m.Network.Mode != vm.BridgeMode && m.Network.Mode != vm.TapMode {
		return nil
	}
	const devices = "/sys/class/net"
	if !exists(devices) {
		return nil // no Linux
	}
	var all []finding.Problem
	device := func(name, part string) (string, bool) {
		path := filepath.Join(devices, filepath.Base(name), part)
		return path, name != "" && exists(path)
	}
	if path, ok := device(m.Network.Bridge, "bridge"); m.Network.Mode == vm.BridgeMode && !ok {
		all = append(all, problem("bridge", finding.Error, "there is no bridge "+m.Network.Bridge,
			"make it, or start the cluster whose network it is", path+" does not exist"))
	}
	if path, ok := device(m.Network.Tap, "tun_flags"); !ok {
		all = append(all, problem("tap", finding.Error, "there is no tap "+m.Network.Tap,
			"make it: `sudo ip tuntap add "+m.Network.Tap+" mode tap user $USER`", path+" does not exist"))
	} else if owner, err := readPID(filepath.Join(filepath.Dir(path), "owner")); err == nil &&
		owner != os.Getuid() && os.Getuid() != 0 {
		all = append(all, problem("tap", finding.Error, "the tap "+m.Network.Tap+" belongs to another user",
			"make it again with `user $USER`", fmt.Sprintf("its owner is %d, you are %d", owner, os.Getuid())))
	}
	return all
}
