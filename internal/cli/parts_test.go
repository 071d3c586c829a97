package cli

import (
	"testing"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
)

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]place{
		`node:C:\k\kubelet.exe`: {"node", `C:\k\kubelet.exe`},
		`win-1:/C:/k`:           {"win-1", `/C:/k`},
		`C:\k`:                  {"", `C:\k`},
		`c:/k`:                  {"", `c:/k`},
		`kubelet.exe`:           {"", `kubelet.exe`},
		`./odd:name`:            {"", `./odd:name`},
		`/tmp/a:b`:              {"", `/tmp/a:b`},
		`node:`:                 {"node", ""},
	} {
		if got := parsePlace(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestANodeMayBeCalledNode(t *testing.T) {
	documents := []config.Document{
		{Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: "one"}}},
		{Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: "node"}}},
	}
	switch got, err := onNode(documents, "node"); {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case len(got) != 1:
		t.Errorf("len(got) = %v, want 1: %+v", len(got), got)
	case got[0].Node.Metadata.Name != "node":
		t.Errorf("got[0].Node.Metadata.Name = %q, want %q; got %v, %v", got[0].Node.Metadata.Name, "node", got, err)
	}
	if got, err := onNode(documents[:1], "node"); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestClosest(t *testing.T) {
	candidates := []string{"status", "setup", "kubernetes", "push", "cp", "only", "output"}
	for typed, want := range map[string]string{
		"statsu": "status", "Status": "status", "kuberentes": "kubernetes", "pus": "push", "olny": "only",
		"frobnicate": "", "xy": "", "kube": "kubernetes", "": "",
	} {
		if got := closest(typed, candidates); got != want {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
	}
	// Both differ by one slip: one has an additional letter, the other a different letter.
	if got := closest("staus", []string{"stats", "status"}); got != "status" {
		t.Errorf("of two that are as close: %q", got)
	}
}

func TestLocalCode(t *testing.T) {
	for code, want := range map[int]int{0: 0, 1: 1, 255: 255, 256: 1, -1073741510: 1, 1603: 1} {
		if got := localCode(code); got != want {
			t.Errorf("%d: %d, want %d", code, got, want)
		}
	}
}

func TestDisplayName(t *testing.T) {
	for program, want := range map[string]string{
		"swdt": "swdt", "/usr/bin/swdt": "swdt", `C:\bin\swdt.exe`: "swdt", "": "swdt", "/tmp/renamed": "swdt",
		"/usr/local/bin/kubectl-swdt": "kubectl swdt", `C:\bin\kubectl-swdt.exe`: "kubectl swdt",
	} {
		if got := displayName(program); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}
