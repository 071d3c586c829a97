//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/testing/cases"
)

// dumpReport has the promised fields of `swdt diag dump -o json` that these tests read.
type dumpReport struct {
	Nodes []struct {
		Verdict   string                         `json:"verdict"`
		Waits     []waitRow                      `json:"waits"`
		Calls     []struct{ Method, Pod string } `json:"calls"`
		Processes []struct {
			Kind, Version, Source, Error, ID, Pod string
			Handles, Threads                      uint32
			Goroutines                            int
		} `json:"processes"`
		Problems []string `json:"problems"`
	} `json:"nodes"`
}

type waitRow struct {
	Process, Operation, On, Method, ID string
	Minutes, Count                     int
	Pods                               []string
}

// dump makes a dump of the node. The exit code says whether something waits.
func (n podNode) dump(t *testing.T, flags ...string) (dumpReport, result) {
	t.Helper()
	r := swdt(t, append([]string{"diag", "dump", "-c", n.config, "-o", "json"}, flags...)...)
	var report dumpReport
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || len(report.Nodes) != 1 {
		t.Fatalf("%v: %v", err, r)
	}
	return report, r
}

// plantedHang is an operation of a real containerd that never returns, and what a dump must say about it.
type plantedHang struct {
	version, fault, operation, method string
	hang                              func(n podNode, t *testing.T, ctx context.Context, p pod)
	root                              func(n podNode, t *testing.T, waits []waitRow) // nil: containerd's own wait is the root
}

func plantedHangs() []plantedHang {
	return []plantedHang{
		{"1.7.12", "hung-kill", "shim: kill", "StopPodSandbox", podNode.stop, podNode.expectHCS},
		{"2.4.2", "hung-create", "shim: create", "RunPodSandbox", podNode.runStuck, podNode.expectSilentShim},
		{"1.7.12", "hung-start", "shim: start", "RunPodSandbox", podNode.runStuck, nil},
		{"1.7.12", "hung-network", "run the CNI plugin (ADD)", "RunPodSandbox", podNode.runStuckWithNetwork, nil},
		{"2.4.2", "hung-network", "run the CNI plugin (ADD)", "RunPodSandbox", podNode.runStuckWithNetwork, nil},
		{"1.7.12", "hung-prepare", "snapshotter: prepare", "RunPodSandbox", podNode.runStuck, nil},
		{"1.6.27", "hung-create", "shim: create", "RunPodSandbox", podNode.runStuck, nil},
	}
}

// TestDumpOfRealContainerd reads the goroutines of real containerds by their event, on a healthy node and with an operation that
// never returns. Nothing is left: no file, and no more handles than before.
func TestDumpOfRealContainerd(t *testing.T) {
	for _, h := range cases.Of(t, plantedHangs(), 2) {
		t.Run(h.version+"/"+h.fault, func(t *testing.T) {
			n := newPodNode(t, h.version)
			p := n.runPod(t, "web", true, "--cores", "0")
			n.expectNothingWaits(t, h.version)
			n.plant(t, h.fault, "")
			n.inBackground(t, func(ctx context.Context) { h.hang(n, t, ctx, p) })
			n.expectWait(t, h)
			n.expectNoStacks(t)
		})
	}
}

// expectNothingWaits makes several dumps of a healthy node.
func (n podNode) expectNothingWaits(t *testing.T, version string) {
	t.Helper()
	var handles []uint32
	for range 5 {
		report, r := n.dump(t)
		node := report.Nodes[0]
		if node.Verdict != "nothing waits" || r.code != exitDone || len(node.Calls) > 0 {
			t.Errorf("a healthy node: %v", r)
		}
		shims := 0
		for _, p := range node.Processes {
			switch {
			case p.Kind == "containerd":
				handles = append(handles, p.Handles)
				if p.Source != "event" || p.Error != "" || p.Goroutines < 10 || strings.TrimPrefix(p.Version, "v") != version {
					t.Errorf("containerd: %+v", p)
				}
			case p.Kind == "shim":
				shims++
				if p.Source != "shimdiag" || p.Error != "" || p.Goroutines < 2 || p.Pod != "default/web" {
					t.Errorf("shim: %+v", p)
				}
			}
		}
		if shims == 0 {
			t.Error("no shim was asked")
		}
	}
	n.expectNoStacks(t)
	t.Logf("handles of containerd: %v", handles)
	if len(handles) == 5 && handles[4] > handles[1]+2 {
		t.Errorf("the handles of containerd grow: %v", handles)
	}
}

// expectNoStacks checks that no dump of containerd is left anywhere in the prefix.
func (n podNode) expectNoStacks(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(n.Prefix, "drive_c"), func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".stacks.log") {
			t.Errorf("%s is left", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// stop stops a pod. The shim's own goroutines are canned, with the functions of hcsshim.
func (n podNode) stop(t *testing.T, ctx context.Context, p pod) {
	n.plant(t, "canned", `goroutine 800 [select, 4 minutes]:
github.com/Microsoft/hcsshim/internal/vmcompute.execute(...)
github.com/Microsoft/hcsshim/internal/vmcompute.HcsTerminateComputeSystem(...)
main.(*service).killInternal(...)
`)
	_, _ = n.runtime.StopPodSandbox(ctx, &runtimev1.StopPodSandboxRequest{PodSandboxId: p.sandbox})
}

func (n podNode) expectHCS(t *testing.T, waits []waitRow) {
	t.Helper()
	if w := waits[0]; w.Process != "shim" || w.On != "HCS" || w.Operation != "HCS: terminate compute system" ||
		fmt.Sprint(w.Pods) != "[default/web]" {
		t.Errorf("the root is %+v", w)
	}
}

// runStuck runs a pod that never starts, and whose shim does not answer the question for its goroutines.
func (n podNode) runStuck(t *testing.T, ctx context.Context, _ pod) {
	n.plant(t, "silent", "")
	n.runStuckPod(ctx, true)
}

func (n podNode) runStuckWithNetwork(_ *testing.T, ctx context.Context, _ pod) {
	n.runStuckPod(ctx, false)
}

func (n podNode) runStuckPod(ctx context.Context, hostProcess bool) {
	_, _ = n.runtime.RunPodSandbox(ctx, &runtimev1.RunPodSandboxRequest{Config: &runtimev1.PodSandboxConfig{
		Metadata: &runtimev1.PodSandboxMetadata{Name: "stuck", Uid: "stuck", Namespace: "default"},
		Windows: &runtimev1.WindowsPodSandboxConfig{
			SecurityContext: &runtimev1.WindowsSandboxSecurityContext{HostProcess: hostProcess}},
	}})
}

func (n podNode) expectSilentShim(t *testing.T, waits []waitRow) {
	t.Helper()
	for _, w := range waits {
		if w.Process == "shim" && strings.Contains(w.Operation, "does not answer") && fmt.Sprint(w.Pods) == "[default/stuck]" {
			return
		}
	}
	t.Errorf("the shim of the new pod is not silent: %+v", waits)
}

// expectWait makes dumps until one of them has the wait, with the pod that the log names. A second dump shows that it did not move.
func (n podNode) expectWait(t *testing.T, h plantedHang) {
	t.Helper()
	within(t, 2*time.Minute, "the dump names "+h.operation, func() error {
		report, r := n.dump(t)
		waits := report.Nodes[0].Waits
		i := slices.IndexFunc(waits, func(w waitRow) bool {
			return w.Process == "containerd" && w.Operation == h.operation && w.Method == h.method
		})
		if i < 0 {
			return errors.New(report.Nodes[0].Verdict)
		}
		if len(waits[i].Pods) != 1 || !strings.HasPrefix(waits[i].Pods[0], "default/") || r.code != exitFinding {
			t.Errorf("%+v, exit code %d", waits[i], r.code)
		}
		if h.root != nil {
			h.root(n, t, waits)
		}
		before, after := textFile(t, r.stdout), filepath.Join(t.TempDir(), "after.json")
		if err := os.WriteFile(after, []byte(swdt(t, "diag", "dump", "-c", n.config, "-o", "json").stdout), 0o600); err != nil {
			t.Fatal(err)
		}
		if moved := swdt(t, "diag", "dump", "show", before, after); moved.code != exitFinding || !strings.Contains(moved.stdout, "did not move") {
			t.Errorf("what moved: %v", moved)
		}
		t.Logf("%s", swdt(t, "diag", "dump", "show", after).stdout)
		return nil
	})
}

// plant makes a file that is a fault of the lab's shim.
func (n podNode) plant(t *testing.T, fault, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.Prefix, "drive_c/lab", fault), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inBackground makes a call that does not return before the test ends.
func (n podNode) inBackground(t *testing.T, call func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		call(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
