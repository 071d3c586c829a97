package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestMissingProgramsAreNamed(t *testing.T) {
	binaries := t.TempDir()
	for _, name := range programs() {
		if name == scheduler || name == kubeadm {
			continue
		}
		if err := os.WriteFile(filepath.Join(binaries, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(t.TempDir(), "state")
	_, err := Start(t.Context(), Options{Binaries: binaries, State: state})
	if !errors.Is(err, ErrNotHere) {
		t.Fatalf("Start returned %v", err)
	}
	expected := []string{binaries, scheduler, kubeadm, "make lab"}
	if runtime.GOOS != "linux" {
		expected = []string{"Linux", runtime.GOOS}
	}
	for _, words := range expected {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("the error lacks %q: %v", words, err)
		}
	}
	if strings.Contains(err.Error(), apiServer) {
		t.Errorf("the error names what is there: %v", err)
	}
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was begun all the same: %v", err)
	}
}

func TestTheLabCanBeElsewhere(t *testing.T) {
	lab := t.TempDir()
	t.Setenv("SWDT_LAB", lab)
	if folder, err := DefaultBinaries(); err != nil || folder != filepath.Join(lab, "linux") {
		t.Errorf("DefaultBinaries returned %s, %v", folder, err)
	}
}
