//go:build linux

package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// parentOf makes the test program start a control plane in this state folder, print that, and wait
// until it is killed.
const parentOf = "CONTROLPLANE_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	state := os.Getenv(parentOf)
	if state == "" {
		goleak.VerifyTestMain(m)
		return
	}
	binaries, err := DefaultBinaries()
	if err == nil {
		_, err = Start(context.Background(), Options{Binaries: binaries, State: state})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

// lab returns the folder of the programs.
func lab(t *testing.T) string {
	t.Helper()
	folder, err := DefaultBinaries()
	if err == nil {
		err = Check(folder)
	}
	switch {
	case err == nil:
	case os.Getenv("SWDT_LAB_CLUSTER") == "required":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return folder
}

func start(t *testing.T, state string) *ControlPlane {
	t.Helper()
	c, err := Start(t.Context(), Options{Binaries: lab(t), State: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// A control plane that was never started does not die.
	c := &ControlPlane{died: make(chan struct{})}
	if err := c.await(ctx, what, condition); err != nil {
		t.Fatal(err)
	}
}

func expectNoProcess(t *testing.T, state string) {
	t.Helper()
	if left := processesOf(t, state); len(left) > 0 {
		t.Errorf("processes of %s are left: %v", state, left)
	}
}

// processesOf returns the processes that have the state folder in their arguments, except zombies.
func processesOf(t *testing.T, state string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("list the processes: %v", err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte(state+"/")) {
			continue // it has ended meanwhile, or is not one of them
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}
