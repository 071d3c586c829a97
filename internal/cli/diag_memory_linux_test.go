//go:build !race

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// mostMemory limits swdt's memory, in bytes, while each of thirty nodes sends it four
// megabytes of log.
const mostMemory = 150 << 20

// swdt writes the gathered data to the disk and does not keep it in memory. It runs as a
// process of its own here, since the nodes are in this one.
func TestThirtyNodesInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes 120 MB of logs")
	}
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("win-%02d", i))
	}
	w, machines, _ := diagnosed(t, names...)
	line := "I1120 14:29:59.123456    4711 kubelet.go:2345] \"SyncLoop ADD\" source=\"api\" " +
		"pods=[\"default/web-6d4cf56db6-abcde\"]\n"
	log := []byte(strings.Repeat(line, 4<<20/len(line)))
	for _, m := range machines {
		m.WriteFile(`C:\var\log\kubelet\kubelet.log`, log)
		m.Script(func(c platform.Command) (simulated.Answer, bool) {
			return simulated.Answer{Stdout: "an answer\r\n"}, c.Path == powershell.Program
		})
	}
	swdt := exec.CommandContext(t.Context(), "swdt", "diag", "--profile", "full", "--out", w.bundle(), "-c",
		filepath.Join(w.folder, "swdt.yaml"))
	swdt.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(w.folder, "cache"), "HOME="+w.folder, "GOGC=100")
	var out bytes.Buffer
	swdt.Stdout, swdt.Stderr = &out, &out
	if err := swdt.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- swdt.Wait() }()
	peak, err := peakUntil(ended, swdt.Process.Pid)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Logf("peak memory %d MB, bundle of 30 nodes", peak>>20)
	if peak == 0 {
		t.Error("it was not measured")
	}
	if peak > mostMemory {
		t.Errorf("swdt took %d MB", peak>>20)
	}
	bundle, err := diag.Open(w.bundle())
	if err != nil || len(bundle.Manifest.Nodes) != 30 {
		t.Fatal(err)
	}
	for _, n := range bundle.Manifest.Nodes {
		if n.Result != diag.Whole {
			t.Errorf("%s is %s: %s", n.Name, n.Result, n.Error)
		}
	}
}

// peakUntil returns the largest amount of memory that a process has used until it ends.
// (getrusage's maximum of a child is never below what this process, which holds the
// thirty nodes, used when it started the child.)
func peakUntil(ended <-chan error, pid int) (peak int64, err error) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-look.C:
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has just ended
		}
		if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
			var kilobytes int64
			if _, err := fmt.Sscan(after, &kilobytes); err == nil {
				peak = max(peak, kilobytes<<10)
			}
		}
	}
}
