//go:build e2e

package e2e

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine describes the content of a Wine node: the kind (file or folder) of each path, the
// services, and the machine's environment variables in the registry.
type machine struct {
	files    map[string]string
	services []string
	registry []string
}

func machineOf(t *testing.T, info sandboxInfo, file string) machine {
	t.Helper()
	m := machine{files: map[string]string{}}
	root := filepath.Join(info.Prefix, "drive_c")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		kind := "file"
		if entry.IsDir() {
			kind = "folder"
		}
		m.files[strings.TrimPrefix(path, root)] = kind
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	m.services = linesOf(ok(t, "exec", "-c", file, "--", "reg", "query",
		`HKLM\SYSTEM\CurrentControlSet\Services`).stdout)
	m.registry = linesOf(ok(t, "exec", "-c", file, "--", "reg", "query",
		`HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`).stdout)
	return m
}

func linesOf(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// stays reports whether a reset leaves the path in place, as docs/guides/join.md lists.
func stays(path string) bool {
	for _, kept := range []string{"/ProgramData/swdt", "/var/log", "/var"} {
		if path == kept || strings.HasPrefix(path, kept+"/") && kept != "/var" {
			return true
		}
	}
	return false
}

func (m machine) expectSame(t *testing.T, after machine) {
	t.Helper()
	for path := range m.files {
		if _, there := after.files[path]; !there {
			t.Errorf("reset removed %s, which was there before", path)
		}
	}
	for path, kind := range after.files {
		if _, was := m.files[path]; !was && !stays(path) {
			t.Errorf("reset leaves the %s %s", kind, path)
		}
	}
	if !slices.Equal(m.services, after.services) {
		before, _ := json.Marshal(m.services)
		now, _ := json.Marshal(after.services)
		t.Errorf("services differ:\n%s\n%s", before, now)
	}
	if !slices.Equal(m.registry, after.registry) {
		t.Errorf("the machine's environment differs:\n%v\n%v", m.registry, after.registry)
	}
}
