package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Twenty nodes, three of them broken in three ways: seventeen get the new
// binaries, and swdt names the other three with their reasons.
func TestTwentyNodesThreeBroken(t *testing.T) {
	w := &workplace{t: t, folder: t.TempDir()}
	var file strings.Builder
	for i := range 20 {
		name := fmt.Sprintf("win-%02d", i)
		machine, document, unplug := simulatedNode(t, name, w.folder)
		file.WriteString(document + "---\n")
		switch i {
		case 4:
			unplug()
		case 9:
			machine.OnOperation(diskFullAtStaging)
		case 15:
			machine.OnOperation(startFailsOnce())
		}
	}
	w.write("swdt.yaml", []byte(file.String()))
	w.build("2.0.0")

	story := &lines{}
	code, stdout := w.swdt(t.Context(), story, "push", "-o", "json")

	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	var report push.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	switch s := report.Summary; {
	case s.Changed != 17:
		t.Errorf("s.Changed = %v, want 17", s.Changed)
	case s.Unchanged != 0:
		t.Errorf("s.Unchanged = %v, want 0", s.Unchanged)
	case s.Failed != 3:
		t.Errorf("s.Failed = %v, want 3; summary: %+v", s.Failed, s)
	}
	_, failures, _ := strings.Cut(story.String(), "3 of 20 nodes failed:")
	for name, reason := range map[string]string{
		"win-04": "connection refused",
		"win-09": "not enough space on the disk",
		"win-15": "the node is back to the previous binaries",
	} {
		_, text, found := strings.Cut(failures, name+": ")
		line, _, _ := strings.Cut(text, "\n")
		if !found || !strings.Contains(line, reason) {
			t.Errorf("%s: %q does not say %q", name, line, reason)
		}
	}
	for i, result := range report.Nodes {
		want := push.Changed
		switch i {
		case 4, 9:
			want = push.Failed
		case 15:
			want = push.RolledBack
		}
		if result.Name != fmt.Sprintf("win-%02d", i) || result.Result != want {
			t.Errorf("node %d: %s %s, want %s", i, result.Name, result.Result, want)
		}
	}
}

func diskFullAtStaging(op simulated.Operation) simulated.Verdict {
	if op.Kind == simulated.OpWrite && strings.Contains(op.Target, `.exe.swdt-`) {
		return simulated.DiskFull()
	}
	return simulated.Continue()
}

func startFailsOnce() func(simulated.Operation) simulated.Verdict {
	return func(op simulated.Operation) simulated.Verdict {
		first := op.Service == layout.GuardianService && op.Kind == simulated.OpServiceStart &&
			op.Target == "kubelet" && op.Occurrence == 1 && op.Phase == simulated.Before
		if first {
			return simulated.Fail(fault.ErrStartFailed)
		}
		return simulated.Continue()
	}
}
