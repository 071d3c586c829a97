package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A module is checked with its tests, as each system sees it.
func TestAModuleIsChecked(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/m\n\ngo 1.26\n",
		"a.go":          "package m\n\nimport \"os\"\n\nvar A = os.Getpid()\n",
		"b_windows.go":  "package m\n\nimport \"syscall\"\n\nvar B = syscall.Kill\n",
		"c_test.go":     "package m\n\nimport \"testing\"\n\nfunc TestC(t *testing.T) { t.Nothing() }\n",
		"d_x_test.go":   "package m_test\n\nimport \"example.com/m\"\n\nvar D string = m.A\n",
		"sub/linux.go":  "//go:build linux\n\npackage sub\n\nvar E int = \"\"\n",
		"sub/others.go": "package sub\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	err := run(&out, root, "", []string{"darwin", "windows"})
	if err == nil {
		t.Error("found nothing")
	}
	for text, times := range map[string]int{
		"windows: b_windows.go:5:17: undefined: syscall.Kill": 1, "c_test.go:5:30: t.Nothing undefined": 2,
		"d_x_test.go:5:16: cannot use m.A": 2, "sub/linux.go": 0, "imported and not used": 0,
	} {
		if got := strings.Count(out.String(), text); got != times {
			t.Errorf("%q occurs %d times, want %d:\n%s", text, got, times, &out)
		}
	}
	out.Reset()
	for _, name := range []string{"b_windows.go", "c_test.go", "d_x_test.go"} {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(&out, root, "", []string{"darwin", "windows"}); err != nil || out.Len() > 0 {
		t.Errorf("%v: %s", err, &out)
	}
}
