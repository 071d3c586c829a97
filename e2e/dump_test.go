//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// dumpReport has the promised fields of `swdt diag dump -o json` that these tests read.
type dumpReport struct {
	Nodes []struct {
		Verdict string `json:"verdict"`
		Waits   []struct {
			Process, Operation, On, Method, ID string
			Minutes, Count                     int
			Pods                               []string
		} `json:"waits"`
		Calls     []struct{ Method, Pod string } `json:"calls"`
		Processes []struct {
			Kind, Version, Source, Error, ID, Pod string
			Handles, Threads                      uint32
			Goroutines                            int
		} `json:"processes"`
		Problems []string `json:"problems"`
	} `json:"nodes"`
}

// dump makes a dump of the node. The exit code says whether something waits.
func (n podNode) dump(t *testing.T) (dumpReport, result) {
	t.Helper()
	r := swdt(t, "diag", "dump", "-c", n.config, "-o", "json")
	var report dumpReport
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || len(report.Nodes) != 1 {
		t.Fatalf("%v: %v", err, r)
	}
	return report, r
}

// TestDumpOfRealContainerd reads the goroutines of real containerds by their event, on a healthy node and with a shim that never
// answers. Nothing is left: no file, and no more handles than before.
func TestDumpOfRealContainerd(t *testing.T) {
	for _, version := range []string{"1.7.12", "2.4.2"} {
		t.Run(version, func(t *testing.T) {
			n := newPodNode(t, version)
			p := n.runPod(t, "web", true, "--cores", "0")
			n.expectNothingWaits(t, version)
			if version == "1.7.12" {
				n.hangKill(t, p)
				return
			}
			n.hangCreate(t)
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

// hangKill has a shim never return from Kill: the dump names the call, the operation and the pod. The shim's own goroutines are
// canned, with the functions of hcsshim.
func (n podNode) hangKill(t *testing.T, p pod) {
	t.Helper()
	n.plant(t, "hung-kill", "")
	n.plant(t, "canned", `goroutine 800 [select, 4 minutes]:
github.com/Microsoft/hcsshim/internal/vmcompute.execute(...)
github.com/Microsoft/hcsshim/internal/vmcompute.HcsTerminateComputeSystem(...)
main.(*service).killInternal(...)
`)
	n.inBackground(t, func(ctx context.Context) {
		_, _ = n.runtime.StopPodSandbox(ctx, &runtimev1.StopPodSandboxRequest{PodSandboxId: p.sandbox})
	})
	n.expectWait(t, func(w waitRow) bool {
		return w.Process == "containerd" && w.Operation == "shim: kill" && w.Method == "StopPodSandbox"
	})
	report, _ := n.dump(t)
	if w := report.Nodes[0].Waits[0]; w.Process != "shim" || w.On != "HCS" || w.Operation != "HCS: terminate compute system" ||
		fmt.Sprint(w.Pods) != "[default/web]" {
		t.Errorf("the root is %+v", w)
	}
	n.expectNoStacks(t)
}

// hangCreate has a new pod's shim never return from Create, and never answer the question for its goroutines.
func (n podNode) hangCreate(t *testing.T) {
	t.Helper()
	n.plant(t, "hung-create", "")
	n.plant(t, "silent", "")
	n.inBackground(t, func(ctx context.Context) {
		_, _ = n.runtime.RunPodSandbox(ctx, &runtimev1.RunPodSandboxRequest{Config: &runtimev1.PodSandboxConfig{
			Metadata: &runtimev1.PodSandboxMetadata{Name: "stuck", Uid: "stuck", Namespace: "default"},
			Windows: &runtimev1.WindowsPodSandboxConfig{
				SecurityContext: &runtimev1.WindowsSandboxSecurityContext{HostProcess: true}},
		}})
	})
	n.expectWait(t, func(w waitRow) bool {
		return w.Process == "containerd" && w.Operation == "shim: create" && w.Method == "RunPodSandbox"
	})
	report, _ := n.dump(t)
	silent := false
	for _, w := range report.Nodes[0].Waits {
		silent = silent || w.Process == "shim" && strings.Contains(w.Operation, "does not answer") && fmt.Sprint(w.Pods) == "[default/stuck]"
	}
	if !silent {
		t.Errorf("the shim of the new pod is not silent: %+v", report.Nodes[0].Waits)
	}
	n.expectNoStacks(t)
}

type waitRow struct {
	Process, Operation, Method string
	Pods                       []string
}

// expectWait makes dumps until one of them has a wait, with the pod that the log names.
func (n podNode) expectWait(t *testing.T, wanted func(waitRow) bool) {
	t.Helper()
	within(t, 2*time.Minute, "the dump names the operation", func() error {
		report, r := n.dump(t)
		for _, w := range report.Nodes[0].Waits {
			row := waitRow{w.Process, w.Operation, w.Method, w.Pods}
			if wanted(row) {
				if len(row.Pods) != 1 || !strings.HasPrefix(row.Pods[0], "default/") || r.code != exitFinding {
					t.Errorf("%+v, exit code %d", row, r.code)
				}
				t.Logf("%s", swdt(t, "diag", "dump", "-c", n.config).stdout)
				return nil
			}
		}
		return errors.New(r.stdout[:min(len(r.stdout), 500)])
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
