package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// TestMain lets the test binary act as a build that reports its start and then runs for ever.
func TestMain(m *testing.M) {
	if flag := os.Getenv("BUILD_TEST_RUNS"); flag != "" {
		_ = os.WriteFile(flag, nil, 0o600)
		select {}
	}
	os.Exit(m.Run())
}

func TestShellAndList(t *testing.T) {
	dir := tempFolder(t)
	r := Request{Name: "kubelet", Dir: dir, Env: []string{"GREETING=hello"},
		Command: v1alpha1.Command{Shell: `echo %GREETING%> "out 1.txt"`}}
	if err := Run(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(filepath.Join(dir, "out 1.txt"))
	if err != nil || strings.TrimSpace(string(out)) != "hello" {
		t.Errorf("wrote %q, %v", out, err)
	}
	r.Command = v1alpha1.Command{Args: []string{"cmd.exe", "/c", "echo no & exit 3"}}
	var failed *FailedError
	switch err := Run(t.Context(), r); {
	case !errors.As(err, &failed):
		t.Errorf("the error is %v, a %T, want a %T", err, err, failed)
	case failed.ExitCode != 3:
		t.Errorf("failed.ExitCode is %v, want 3", failed.ExitCode)
	case !strings.Contains(failed.Output, "no"):
		t.Errorf("failed.Output lacks %q:\n%s", "no", failed.Output)
	}
}

func TestCancelEndsTheWholeTree(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := tempFolder(t)
	program := filepath.Join(dir, "a build.exe")
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o700); err != nil {
		t.Fatal(err)
	}
	flag := filepath.Join(dir, "runs")
	r := Request{Name: "k", Dir: dir, Env: []string{"BUILD_TEST_RUNS=" + flag},
		Command: v1alpha1.Command{Shell: `"` + program + `"`}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, r) }()
	for {
		if _, err := os.Stat(flag); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("ended by itself: %v", err)
		default:
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	// A copy of the program can be overwritten only when no process runs it.
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Errorf("it still runs: %v", err)
	}
}

// tempFolder replaces t.TempDir, which cannot remove a tree under Wine.
func tempFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "swdt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
