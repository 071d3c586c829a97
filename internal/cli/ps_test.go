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
	switch {
	case code != 5:
		t.Errorf("code = %v, want 5", code)
	case !strings.Contains(stdout, "a shim of a pod that the container runtime does not list, deadbeef"):
		t.Errorf("stdout lacks %q:\n%s", "a shim of a pod that the container runtime does not list, deadbeef", stdout)
	case !strings.Contains(stdout, "`swdt exec -c "):
		t.Errorf("stdout lacks %q:\n%s", "`swdt exec -c ", stdout)
	case !strings.Contains(stdout, " -- taskkill /F /T /PID "):
		t.Errorf("stdout lacks %q:\n%s", " -- taskkill /F /T /PID ", stdout)
	case strings.Contains(stdout, "kubelet"):
		t.Errorf("stdout contains %q:\n%s", "kubelet", stdout)
	case !strings.Contains(story.String(), "win1: one process has no owner"):
		t.Errorf("story.String() lacks %q:\n%s; exit code %d\n%s\n%s", "win1: one process has no owner",
			story.String(), code, stdout, story)
	}
	if machine.Kill("containerd-shim-runhcs-v1.exe") != 2 {
		t.Fatalf("%d and the pod's shim should have been there", pid)
	}
	stop(t, machine)
	story = &lines{}
	code, stdout = w.swdt(t.Context(), story, "ps", "--fail-on", "orphan")
	switch {
	case code != 1:
		t.Errorf("code = %v, want 1", code)
	case !strings.Contains(story.String(),
		"orphaned shims cannot be detected while the container runtime does not answer"):
		t.Errorf("story.String() lacks %q:\n%s",
			"orphaned shims cannot be detected while the container runtime does not answer", story.String())
	case !strings.Contains(stdout, "(stopped)"):
		t.Errorf("stdout lacks %q:\n%s; without the runtime: exit code %d\n%s\n%s", "(stopped)", stdout, code,
			stdout, story)
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
