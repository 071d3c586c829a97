//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// processesNamed returns a prefix's processes that run the program with this argument.
func processesNamed(t *testing.T, prefix, program, argument string) (pids []int) {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		environment, _ := os.ReadFile(filepath.Join(folder, "environ"))
		commandLine, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		args := strings.Split(string(commandLine), "\x00")
		if !bytes.Contains(environment, []byte("WINEPREFIX="+prefix+"\x00")) ||
			!strings.HasSuffix(strings.Trim(args[0], `"`), program) || !slices.Contains(args, argument) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// cpuTime records the CPU time that this machine's kernel counts for a process, over time.
type cpuTime struct {
	end  chan struct{}
	done sync.WaitGroup

	at   []time.Time
	used []time.Duration
}

func countCPUTime(t *testing.T, pid int) *cpuTime {
	t.Helper()
	c := &cpuTime{end: make(chan struct{})}
	if err := c.look(pid); err != nil {
		t.Fatal(err)
	}
	c.done.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-c.end:
				return
			case <-tick.C:
				if err := c.look(pid); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
					return
				}
			}
		}
	})
	return c
}

func (c *cpuTime) stop() {
	close(c.end)
	c.done.Wait()
}

// look reads the 14th and 15th field of /proc/PID/stat, user and system time in
// hundredths of a second; the second field, the name, may have spaces.
func (c *cpuTime) look(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var used time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return err
		}
		used += time.Duration(ticks) * 10 * time.Millisecond
	}
	c.at, c.used = append(c.at, time.Now()), append(c.used, used)
	return nil
}

// between returns the rate between two moments, in cores. It returns false if the samples do not
// cover this whole time.
func (c *cpuTime) between(from, to time.Time) (float64, bool) {
	first, ok := c.until(from)
	last, okLast := c.until(to)
	return float64(last-first) / float64(to.Sub(from)), ok && okLast
}

// until returns the CPU time that was used up to a moment, interpolated between two samples. It
// returns false if there is no sample before or after the moment.
func (c *cpuTime) until(moment time.Time) (time.Duration, bool) {
	i := sort.Search(len(c.at), func(i int) bool { return c.at[i].After(moment) })
	if i == 0 || i == len(c.at) {
		return 0, false
	}
	share := float64(moment.Sub(c.at[i-1])) / float64(c.at[i].Sub(c.at[i-1]))
	return c.used[i-1] + time.Duration(share*float64(c.used[i]-c.used[i-1])), true
}
