//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
)

const (
	statsPods     = 200
	statsInterval = time.Second
	// statsFor is about the shortest time after which growth of the memory is visible.
	statsFor = 5 * time.Minute
)

// Stats has the results of the part stats.
type Stats struct {
	Machine Machine `json:"machine"`
	Pods    int     `json:"pods"`
	Watches []Watch `json:"watches"`
}

// Watch has the results of one `swdt stats watch`, with the cost at the node's end.
type Watch struct {
	Node    string  `json:"node"`
	Output  string  `json:"output"`
	Seconds float64 `json:"seconds"` // on the clock, start and end included
	CPU     float64 `json:"processorSeconds"`
	// Resident is the maximum of the process's memory, including the pages of its executable file.
	// Own is the maximum without those pages, sampled every second.
	Resident int64 `json:"residentBytes"`
	Own      int64 `json:"ownBytes"`
	Answers  int   `json:"answers"`
	Samples  int   `json:"samples"`
	Printed  int64 `json:"printedBytes"`
	Recorded int64 `json:"recordedBytes"`
	Far      []Far `json:"far"`
}

// Far has the cost of the processes with one role at the node's end.
type Far struct {
	What string  `json:"what"`
	CPU  float64 `json:"processorSeconds"`
	Most int64   `json:"residentBytes"` // the largest value of any of these processes
}

// watched is a node to watch.
type watched struct {
	name, config string
	env          []string
	// far returns the processes whose cost is counted, by their role.
	far func() map[string][]int
}

// stats watches three nodes at the same time, so that other load on the machine affects all of
// them: a simulated node with lines into a pipe, a simulated node with a table on a terminal, and
// the real agent under Wine.
func (b *bench) stats(ctx context.Context) (Stats, error) {
	result := Stats{Pods: statsPods}
	var nodes []watched
	for _, name := range []string{"text", "table"} {
		node, end, err := b.startSimulatedNode(ctx, filepath.Join(b.work, "stats", name))
		defer end()
		if err != nil {
			return result, err
		}
		nodes = append(nodes, node)
	}
	wine, end, err := b.startWineRuntime(ctx, filepath.Join(b.work, "stats", "wine"))
	defer end()
	if err != nil {
		return result, err
	}
	nodes = append(nodes, wine.watched())
	result.Watches = make([]Watch, len(nodes))
	failures := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, node := range nodes {
		output := []string{"text", "table", "text"}[i]
		all.Go(func() { result.Watches[i], failures[i] = b.watch(ctx, node, output, fmt.Sprintf("stats-%d", i)) })
	}
	all.Wait()
	for _, w := range result.Watches {
		logf("%-10s %-5s %6.2f s of processors, %3d MB resident, %3d MB own, %d answers; far: %+v", w.Node, w.Output,
			w.CPU, w.Resident/1e6, w.Own/1e6, w.Answers, w.Far)
	}
	return result, errors.Join(failures...)
}

// startSimulatedNode starts a sandbox of swdt, a single process that is SSH server,
// Windows, container runtime and agent. The caller must call the returned function, even after an
// error.
func (b *bench) startSimulatedNode(ctx context.Context, folder string) (watched, func(), error) {
	state := filepath.Join(folder, "state")
	w := watched{name: "simulated", env: []string{"XDG_CACHE_HOME=" + filepath.Join(folder, "cache")}}
	end := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if _, err := words(b.swdt, "sandbox", "down", "--state-dir", state).run(ctx); err != nil {
			logf("%v", err)
		}
	}
	up, err := words(b.swdt, "sandbox", "up", "--state-dir", state, "--pods", fmt.Sprint(statsPods),
		"-o", "json").run(ctx)
	if err != nil {
		return w, end, err
	}
	var info struct {
		Config string
		PID    int
	}
	if err := json.Unmarshal(up.stdout, &info); err != nil {
		return w, end, fmt.Errorf("swdt sandbox up: %w", err)
	}
	w.config = info.Config
	w.far = func() map[string][]int {
		return map[string][]int{"SSH server, Windows, runtime and agent in one process": {info.PID}}
	}
	return w, end, nil
}

// watch runs `swdt stats watch`, and samples the memory and the processor time of all processes every
// second.
func (b *bench) watch(ctx context.Context, node watched, output, name string) (Watch, error) {
	w := Watch{Node: node.name, Output: output}
	ctx, cancel := context.WithTimeout(ctx, b.watchFor+limit)
	defer cancel()
	recording := filepath.Join(b.work, name+".swdt")
	cmd := exec.CommandContext(ctx, b.swdt, "stats", "watch", "-c", node.config, "--interval", statsInterval.String(),
		"--for", b.watchFor.String(), "--record", recording)
	cmd.Env = append(os.Environ(), node.env...)
	var story strings.Builder
	cmd.Stderr = &story
	out := &counter{}
	shown, err := show(cmd, output, out)
	if err != nil {
		return w, err
	}
	far := newAccount(node.far)
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return w, errors.Join(err, shown())
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for running := true; running; {
		select {
		case err = <-done:
			running = false
		case <-ticker.C:
			w.Own = max(w.Own, statusBytes(cmd.Process.Pid, "RssAnon"))
			far.look()
		}
	}
	w.Seconds = time.Since(begun).Seconds()
	if err := errors.Join(err, shown()); err != nil {
		return w, fmt.Errorf("swdt stats watch: %w\n%s", err, story.String())
	}
	far.look()
	w.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	w.Resident, w.Printed, w.Far = peak(cmd), out.bytes.Load(), far.sums()
	return w, w.count(recording, int(b.watchFor/statsInterval))
}

// show makes the command write to out: through a terminal of 120 columns if output is "table", else
// through a pipe. The returned function waits for the end of the output and frees everything.
func show(cmd *exec.Cmd, output string, out io.Writer) (func() error, error) {
	if output != "table" {
		cmd.Stdout = out
		return func() error { return nil }, nil
	}
	keyboard, terminal, err := pty.Open()
	if err != nil {
		return nil, err
	}
	if err := pty.Setsize(keyboard, &pty.Winsize{Rows: 50, Cols: 120}); err != nil {
		return nil, errors.Join(err, keyboard.Close(), terminal.Close())
	}
	cmd.Stdout = terminal
	shown := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, keyboard)
		if errors.Is(err, syscall.EIO) { // the end of a terminal's output
			err = nil
		}
		shown <- err
	}()
	return func() error {
		err := terminal.Close()
		return errors.Join(err, <-shown, keyboard.Close())
	}, nil
}

// count counts the answers and samples in the recording. It returns an error if some are missing, since
// the watch did not do its work in this case.
func (w *Watch) count(recording string, ticks int) error {
	var err error
	if w.Recorded, err = sizeOf(recording); err != nil {
		return err
	}
	_, err = record.Read(recording, func(_ record.Meta, r stats.Reading) error {
		if r.Err != "" {
			return fmt.Errorf("the %s node failed to answer: %s", w.Node, r.Err)
		}
		w.Answers++
		w.Samples += len(r.Samples)
		return nil
	})
	if err != nil {
		return err
	}
	if least := ticks * 9 / 10; w.Answers < least || w.Samples != w.Answers*statsPods {
		return fmt.Errorf("the %s node gave %d answers with %d samples in all; expected %d answers at least, with %d "+
			"samples each",
			w.Node, w.Answers, w.Samples, least, statsPods)
	}
	return nil
}

// account counts the cost of processes. It leaves out the processor time that a process had used
// before newAccount made the account.
type account struct {
	find   func() map[string][]int
	before map[int]float64
	last   map[string]map[int]float64
	most   map[string]int64
	order  []string
}

func newAccount(find func() map[string][]int) *account {
	a := &account{find: find, before: map[int]float64{}, last: map[string]map[int]float64{}, most: map[string]int64{}}
	for _, pids := range find() {
		for _, pid := range pids {
			a.before[pid], _ = processorSeconds(pid)
		}
	}
	return a
}

func (a *account) look() {
	for what, pids := range a.find() {
		if a.last[what] == nil {
			a.last[what] = map[int]float64{}
			a.order = append(a.order, what)
		}
		for _, pid := range pids {
			if cpu, ok := processorSeconds(pid); ok {
				a.last[what][pid] = cpu
				a.most[what] = max(a.most[what], statusBytes(pid, "VmHWM"))
			}
		}
	}
}

func (a *account) sums() []Far {
	var all []Far
	for _, what := range a.order {
		f := Far{What: what, Most: a.most[what]}
		for pid, cpu := range a.last[what] {
			f.CPU += cpu - a.before[pid]
		}
		all = append(all, f)
	}
	return all
}

// processorSeconds returns the processor time of a process. It returns false if the process has ended.
func processorSeconds(pid int) (float64, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name of the process, in brackets, may contain any character.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, false
	}
	var user, system float64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, false
	}
	const ticksASecond = 100 // on all architectures on which Go supports Linux
	return (user + system) / ticksASecond, true
}

// statusBytes returns a size from /proc/PID/status, in bytes, or 0 if the process has ended.
func statusBytes(pid int, name string) int64 {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
			var kilobytes int64
			_, _ = fmt.Sscan(value, &kilobytes) // 0 if it is not known
			return kilobytes << 10
		}
	}
	return 0
}

func statsTable(s Stats) string {
	var rows, far [][]string
	for _, w := range s.Watches {
		rows = append(rows, []string{
			cmp.Or(map[string]string{"table": "live table on a terminal", "text": "lines into a pipe"}[w.Output],
				w.Output) + ", " + w.Node + " node",
			seconds(w.Seconds), seconds(w.CPU), percent(w.CPU, w.Seconds), megabytes(w.Resident), megabytes(w.Own),
			grouped(int64(w.Samples)), grouped(w.Printed), grouped(w.Recorded),
		})
		for _, f := range w.Far {
			far = append(far, []string{w.Node + " node, " + w.Output + ": " + f.What, seconds(f.CPU),
				percent(f.CPU, w.Seconds), megabytes(f.Most)})
		}
	}
	return machineLine(s.Machine, 0) + "\n\n" +
		table([]string{"`swdt stats watch`", "seconds", "processor s", "of a core", "resident MB", "own MB", "samples",
			"bytes printed", "bytes recorded"}, rows) +
		"\n" + table([]string{"at the other end", "processor s", "of a core", "resident MB"}, far)
}

func percent(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*part/whole)
}
