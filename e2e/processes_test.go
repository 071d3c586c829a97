//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	agentProcess    = "agent"
	guardianProcess = "guardian"
)

// processesOf returns the IDs of a prefix's processes of a kind.
func processesOf(t *testing.T, prefix, kind string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		commandLine, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		args := strings.Split(strings.TrimRight(string(commandLine), "\x00"), "\x00")
		isAgent := strings.HasSuffix(strings.Trim(args[0], `"`), `swdt-agent.exe`)
		isGuardian := strings.Contains(string(commandLine), "swdt-agent.exe") &&
			(slices.Contains(args, "guardian") || slices.Contains(args, "capture"))
		if !bytes.Contains(environment, []byte("WINEPREFIX="+prefix+"\x00")) {
			continue
		}
		if kind == guardianProcess && isGuardian || kind == agentProcess && isAgent && !isGuardian {
			pids = append(pids, pid)
		}
	}
	return pids
}

// holdersOf returns the command lines of the processes that map or have opened a file, each behind its PID.
func holdersOf(t *testing.T, path string) (holders []string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		maps, _ := os.ReadFile(process + "/maps")
		opened, _ := filepath.Glob(process + "/fd/*")
		holds := bytes.Contains(maps, []byte(path+"\n")) || slices.ContainsFunc(opened, func(descriptor string) bool {
			file, _ := os.Readlink(descriptor)
			return file == path
		})
		if holds {
			commandLine, _ := os.ReadFile(process + "/cmdline")
			holders = append(holders, fmt.Sprintf("%s %q", filepath.Base(process), commandLine))
		}
	}
	return holders
}
