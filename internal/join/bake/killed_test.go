package bake_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/join/bake"
	"github.com/swdt-dev/swdt/internal/testing/cases"
	"github.com/swdt-dev/swdt/internal/ui"
)

// These make this test binary bake in a folder, and end without a word when a step begins.
const killFolder, killStep = "SWDT_BAKE_FOLDER", "SWDT_BAKE_STEP"

// killer ends its process when a step begins, as SIGKILL and a power cut do.
type killer struct {
	ui.Discard
	at string
}

func (k killer) Step(format string, args ...any) {
	if len(args) > 2 && args[2] == k.at {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		panic(err) // unless it has ended
	}
}

// A swdt that is killed at any step leaves an earlier image as it was, no part of a new one at its place, and at most one
// VM, which is listed and can be deleted. The next run bakes, and removes the files of the killed one.
func TestKilledAtEachStep(t *testing.T) {
	if folder := os.Getenv(killFolder); folder != "" {
		k := kitchenIn(t, folder)
		k.o.Replace = true
		_, err := bake.Run(context.Background(), k.doc, k.o, killer{at: os.Getenv(killStep)})
		t.Fatal(err) // it must be killed before
	}
	probe := newKitchen(t)
	probe.o.DryRun = true
	report, err := probe.bake()
	if err != nil || len(report.Steps) < 7 {
		t.Fatalf("%v, %+v", err, report.Steps)
	}
	for _, step := range cases.Of(t, report.Steps, 3) {
		t.Run(step.Name, func(t *testing.T) {
			k := newKitchen(t)
			k.write("node.qcow2", "an earlier image")
			process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledAtEachStep$")
			process.Env = append(os.Environ(), killFolder+"="+k.folder, killStep+"="+step.Name)
			if out, err := process.CombinedOutput(); err == nil || process.ProcessState.ExitCode() != -1 {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			if got, err := os.ReadFile(k.o.File); err != nil || string(got) != "an earlier image" {
				t.Errorf("the earlier image has %.40q, %v", got, err)
			}
			for _, name := range k.files() {
				if name != "node.qcow2" && !strings.HasPrefix(name, ".swdt-bake") {
					t.Errorf("left %s", name)
				}
			}
			left := k.machines()
			if step.Name != "machine" && len(left) != 1 || len(left) > 1 {
				t.Fatalf("left the VMs %v", left)
			}
			for _, name := range left {
				if _, err := k.o.Machines.Delete(t.Context(), name, ui.Discard{}); err != nil {
					t.Error(err)
				}
			}
			k.o.Replace = true
			if _, err := k.bake(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"node.qcow2", "node.qcow2.manifest.json"}, k.files()); diff != "" {
				t.Errorf("files after the next run (-want +got):\n%s", diff)
			}
			if left := k.machines(); len(left) > 0 {
				t.Errorf("VMs are left: %v", left)
			}
			if got, err := os.ReadFile(filepath.Join(k.folder, "node.qcow2")); err != nil || len(got) < 1000 {
				t.Errorf("the new image has %d bytes, %v", len(got), err)
			}
		})
	}
}
