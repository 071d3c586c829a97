//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestMetricsOfRealPods reproduces the bug for which `swdt stats watch` exists: a container is
// busy, but some versions of containerd sometimes report a rate of 0, depending on the caller.
func TestMetricsOfRealPods(t *testing.T) {
	recordings := t.TempDir()
	recording := func(version string) string { return filepath.Join(recordings, version+".swdt") }
	t.Run("1.6.27", func(t *testing.T) {
		n := newPodNode(t, "1.6.27")
		p := n.runPod(t, "burner", true, "--cores", "0.5")
		seen := n.watch(t, recording("1.6.27"))
		seen.expectExact(t)
		// This version reports no rate, so there is nothing to check for zeros.
		switch {
		case seen.verdicts["zero"] > 0:
			t.Errorf(`1.6.27 leaves the rate out: seen.verdicts["zero"] is %v, want at most 0`, seen.verdicts["zero"])
		case seen.verdicts["missing"] == 0:
			t.Error(`1.6.27 leaves the rate out: seen.verdicts["missing"] is 0`)
		case seen.code != exitFinding:
			t.Errorf("1.6.27 leaves the rate out: seen.code is %v, want %v", seen.code, exitFinding)
		}
		n.removePod(t, p)
	})
	t.Run("1.7.12", func(t *testing.T) {
		n := newPodNode(t, "1.7.12")
		p := n.runPod(t, "burner", true, "--cores", "0.5")
		seen := n.watch(t, recording("1.7.12"))
		seen.expectExact(t)
		switch {
		case seen.verdicts["zero"] == 0:
			t.Error(`1.7.12 reports zeros: seen.verdicts["zero"] is 0`)
		case seen.verdicts["missing"] > 0:
			t.Errorf(`1.7.12 reports zeros: seen.verdicts["missing"] is %v, want at most 0`, seen.verdicts["missing"])
		case seen.code != exitFinding:
			t.Errorf("1.7.12 reports zeros: seen.code is %v, want %v", seen.code, exitFinding)
		}
		n.removePod(t, p)
	})
	t.Run("2.4.2", func(t *testing.T) {
		n := newPodNode(t, "2.4.2")
		p := n.runPod(t, "burner", true, "--cores", "0.5")
		seen := n.watch(t, recording("2.4.2"))
		seen.expectExact(t)
		if seen.verdicts["zero"] == 0 || seen.code != exitFinding {
			t.Errorf("2.4.2 still reports zeros: %v, exit code %d", seen.verdicts, seen.code)
		}
		n.removePod(t, p)
	})
	t.Run("compared", func(t *testing.T) {
		containerdProvisioner(t, "1.6.27") // skips the test if nothing was recorded with this version
		compared := ok(t, "stats", "compare", recording("1.6.27"), recording("1.7.12"))
		for _, want := range []string{"containerd 1.6.27", "1.7.12", "zero a minute", "missing a minute"} {
			if !strings.Contains(compared.stdout, want) {
				t.Errorf("there is no %q", want)
			}
		}
		ok(t, "stats", "report", recording("1.7.12"), recording("1.6.27"), "-w",
			filepath.Join(recordings, "report.html"))
	})
}

const (
	exitDone    = 0
	exitUsage   = 2
	exitFinding = 5
)

// watched has the samples and the output of `swdt stats watch`.
type watched struct {
	code     int
	verdicts map[string]int
	rows     []statsRow
	kernel   *cpuTime
}

// statsRow has the promised fields of `swdt stats watch -o json`.
type statsRow struct {
	Source   string
	Caller   int
	Pod      string
	Taken    time.Time
	Computed *float64 `json:"computedCores"`
	Counter  *uint64  `json:"usageCoreNanoSeconds"`
	Reported *float64 `json:"reportedCores"`
	Verdicts []string
}

// watch watches the container through the runtime, with two callers.
func (n podNode) watch(t *testing.T, recording string) watched {
	t.Helper()
	return n.watchWith(t, "--source", "cri", "--callers", "2", "--fail-on", "zero", "--record", recording)
}

// watchWith watches the only container, and records the CPU time that this machine's kernel counts
// for the container's process meanwhile.
func (n podNode) watchWith(t *testing.T, args ...string) watched {
	t.Helper()
	pids := processesNamed(t, n.Prefix, "program.exe", "0.5")
	if len(pids) != 1 {
		t.Fatalf("there are %d burning processes", len(pids))
	}
	seen := watched{verdicts: map[string]int{}, kernel: countCPUTime(t, pids[0])}
	r := swdt(t, append([]string{"stats", "watch", "-c", n.config, "--for", "25s", "-o", "json"}, args...)...)
	seen.kernel.stop()
	seen.code = r.code
	for _, row := range rowsOf(t, r) {
		seen.rows = append(seen.rows, row)
		for _, verdict := range row.Verdicts {
			seen.verdicts[verdict]++
		}
	}
	return seen
}

// rowsOf reads the lines of `swdt stats watch -o json`.
func rowsOf(t *testing.T, r result) (rows []statsRow) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(r.stdout))
	for lines.Scan() {
		var row statsRow
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		rows = append(rows, row)
	}
	return rows
}

// expectExact checks that each rate that swdt computes from a counter differs by at most 3 % from the
// rate that the kernel counted for the same process and time.
func (w watched) expectExact(t *testing.T) {
	t.Helper()
	compared, worst := 0, 0.0
	for i, row := range w.rows {
		if row.Computed == nil {
			continue
		}
		from, found := w.windowOf(i)
		if !found {
			t.Errorf("%v has a computed rate and no sample 10 s before", row.Taken)
			continue
		}
		counted, ok := w.kernel.between(from, row.Taken)
		if !ok {
			continue // the kernel's samples do not cover this time
		}
		compared++
		worst = max(worst, math.Abs(*row.Computed/counted-1))
	}
	if compared < 10 {
		t.Errorf("only %d computed rates of %d rows", compared, len(w.rows))
	}
	if worst > 0.03 {
		t.Errorf("computed and counted by the kernel differ by %.1f %%", 100*worst)
	}
	t.Logf("%d computed rates, at most %.2f %% from the kernel's count; verdicts %v in %d rows", compared, 100*worst,
		w.verdicts, len(w.rows))
}

// windowOf returns the time at which the window of a computed rate begins: the time of the latest
// sample of the same source and caller that is at least 10 s older.
func (w watched) windowOf(i int) (time.Time, bool) {
	for j := i - 1; j >= 0; j-- {
		before := w.rows[j]
		if before.Source == w.rows[i].Source && before.Caller == w.rows[i].Caller &&
			w.rows[i].Taken.Sub(before.Taken) >= 10*time.Second {
			return before.Taken, true
		}
	}
	return time.Time{}, false
}

// TestNodesOwnCounters tests the third source, which is independent of any runtime: the node's own
// counter of the container's process. This source reports no rate, and the rate that swdt computes
// from the counter agrees with the runtime's counter and with the kernel.
func TestNodesOwnCounters(t *testing.T) {
	n := newPodNode(t, "1.7.12")
	p := n.runPod(t, "burner", true, "--cores", "0.5")
	n.runPod(t, "idle", true, "--cores", "0") // swdt must not confuse the processes of the two pods
	refused := swdt(t, "stats", "watch", "-c", n.config, "--source", "node", "--fail-on",
		"zero,missing,stale", "--for", "25s")
	if refused.code != exitUsage || !strings.Contains(refused.stderr, "reports no rate") {
		t.Errorf("verdicts on a source that reports no rate: exit code %d, %s", refused.code, refused.stderr)
	}
	seen := n.watchWith(t, "--source", "node", "--pod-pattern", "^burner$")
	seen.expectExact(t)
	if seen.code != exitDone || len(seen.verdicts) > 0 {
		t.Errorf("verdicts %v, exit code %d", seen.verdicts, seen.code)
	}
	for _, row := range seen.rows {
		switch {
		case row.Source != "node":
			t.Fatalf("row.Source is %q, want %q", row.Source, "node")
		case row.Reported != nil:
			t.Fatalf("row.Reported is %v, want nil", row.Reported)
		case row.Counter == nil:
			t.Fatal("row.Counter is nil")
		}
	}
	both := n.watchWith(t, "--source", "node,cri", "--pod-pattern", "^burner$")
	both.expectExact(t)
	idle := rowsOf(t, swdt(t, "stats", "watch", "-c", n.config, "--source", "node", "--pod-pattern", "^idle$", "--for",
		"12s", "-o", "json"))
	if last := idle[len(idle)-1]; last.Computed == nil || *last.Computed > 0.05 {
		t.Errorf("a pod that does nothing: %+v", last)
	}
	n.removePod(t, p)
}

// TestPodOutlivesContainerd kills containerd while a pod runs. After a restart, containerd finds the
// pod again.
func TestPodOutlivesContainerd(t *testing.T) {
	t.Parallel()
	n := newPodNode(t, "1.7.12")
	p := n.runPod(t, "burner", true, "--cores", "0.1")
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	execute := func(command ...string) *runtimev1.ExecSyncResponse {
		t.Helper()
		r, err := n.runtime.ExecSync(ctx, &runtimev1.ExecSyncRequest{ContainerId: p.container,
			Cmd: command, Timeout: 30})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	switch r := execute("cmd", "/c", "echo out& echo err>&2& exit 7"); {
	case !strings.Contains(string(r.Stdout), "out"):
		t.Errorf("exec: r.Stdout lacks %q:\n%s", "out", string(r.Stdout))
	case !strings.Contains(string(r.Stderr), "err"):
		t.Errorf("exec: r.Stderr lacks %q:\n%s", "err", string(r.Stderr))
	case r.ExitCode != 7:
		t.Errorf("exec: r.ExitCode is %v, want 7", r.ExitCode)
	}
	n.exec(t, "taskkill", "/F", "/IM", "containerd.exe")
	eventually(t, "containerd starts again", func() error {
		if r := swdt(t, "exec", "-c", n.config, "--", "net", "start", "containerd"); r.code != 0 {
			return errors.New(r.stderr)
		}
		return nil
	})
	n.awaitRunning(t, p)
	if r := execute("cmd", "/c", "echo again"); !strings.Contains(string(r.Stdout), "again") {
		t.Errorf("exec after the restart: %v", r)
	}
	log, err := os.ReadFile(filepath.Join(n.Prefix, "drive_c/var/log/pods", p.name, "burn.log"))
	if err != nil || !strings.Contains(string(log), "stdout F burning 0.1 cores") {
		t.Errorf("the container's log: %q, %v", log, err)
	}
	n.removePod(t, p)
}

// TestOrdinaryPod runs a pod with a network namespace and an address, which a
// HostProcess pod lacks.
func TestOrdinaryPod(t *testing.T) {
	t.Parallel()
	n := newPodNode(t, "1.7.12")
	n.pullsAhead(t)
	p := n.runPod(t, "ordinary", false, "--cores", "0")
	status, err := n.runtime.PodSandboxStatus(t.Context(), &runtimev1.PodSandboxStatusRequest{PodSandboxId: p.sandbox})
	if err != nil {
		t.Fatal(err)
	}
	if ip := status.Status.Network.GetIp(); !strings.HasPrefix(ip, "10.244.") {
		t.Errorf("the pod's address is %q", ip)
	}
	namespaces := filepath.Join(n.Prefix, "drive_c/ProgramData/swdt-hns/namespaces/*.json")
	if made, err := filepath.Glob(namespaces); err != nil || len(made) != 1 {
		t.Errorf("network namespaces: %v, %v", made, err)
	}
	n.removePod(t, p)
	if left, err := filepath.Glob(namespaces); err != nil || len(left) != 0 {
		t.Errorf("network namespaces are left: %v, %v", left, err)
	}
}

// pullsAhead pulls the image of the pods before they start: the real containerd has it afterwards under the digest of the
// registry, and the second pull finds it there.
func (n podNode) pullsAhead(t *testing.T) {
	t.Helper()
	image := n.registry + "/burn:1"
	for _, want := range []string{"pulled", "unchanged"} {
		var report struct {
			Nodes []struct {
				Images []struct{ Result, Digest, Message string }
			}
		}
		answer := ok(t, "image", "pull", image, "-c", n.config, "-o", "json")
		if err := json.Unmarshal([]byte(answer.stdout), &report); err != nil || len(report.Nodes) != 1 || len(report.Nodes[0].Images) != 1 {
			t.Fatalf("%v: %s", err, answer.stdout)
		}
		if got := report.Nodes[0].Images[0]; got.Result != want || !strings.HasPrefix(got.Digest, "sha256:") || got.Message != "" {
			t.Errorf("%s: %+v, want %s\n%s", image, got, want, answer.stderr)
		}
	}
}
