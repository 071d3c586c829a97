package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// ps finds and prints an orphaned shim, and --fail-on counts it. A runtime that does not
// answer does not mean that the node has no orphans.
func TestPsFindsAnOrphan(t *testing.T) {
	w := &workplace{t: t, folder: t.TempDir()}
	machine, document, _ := simulatedNode(t, "win1", w.folder)
	w.write("swdt.yaml", []byte(document))
	story := &lines{}

	if code, _ := w.swdt(t.Context(), story, "ps", "--fail-on", "orphan"); code != 0 {
		t.Fatalf("without an orphan: exit code %d\n%s", code, story)
	}
	const shim = `C:\Program Files\containerd\bin\containerd-shim-runhcs-v1.exe`
	pid := machine.AddProcess(simulated.ProcessSpec{
		Image: shim, CommandLine: `"` + shim + `" -namespace k8s.io -id deadbeef serve`,
		Started: time.Now().Add(-time.Hour),
	})
	code, stdout := w.swdt(t.Context(), story, "ps", "--orphans", "--fail-on", "orphan")
	if code != 5 || !strings.Contains(stdout, "a shim of a pod that the container runtime does not list, deadbeef") ||
		!strings.Contains(stdout, "`swdt exec -c ") || !strings.Contains(stdout, " -- taskkill /F /T /PID ") ||
		strings.Contains(stdout, "kubelet") || !strings.Contains(story.String(), "win1: one process has no owner") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, story)
	}
	if machine.Kill("containerd-shim-runhcs-v1.exe") != 2 {
		t.Fatalf("%d and the pod's shim should have been there", pid)
	}
	stop(t, machine)
	story = &lines{}
	code, stdout = w.swdt(t.Context(), story, "ps", "--fail-on", "orphan")
	if code != 1 ||
		!strings.Contains(story.String(),
			"orphaned shims cannot be detected while the container runtime does not answer") ||
		!strings.Contains(stdout, "(stopped)") {
		t.Errorf("without the runtime: exit code %d\n%s\n%s", code, stdout, story)
	}
}

func stop(t *testing.T, machine *simulated.Machine) {
	t.Helper()
	services := machine.Process("test").Services
	for _, name := range []string{"kubelet", "containerd"} {
		if err := services.Stop(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for status, err := services.Status(ctx, name); status.PID != 0; status, err = services.Status(ctx, name) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
