package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a repository with the Makefile and one commit. The programs that `make pack` may start print their
// arguments, except for Go, which fails.
func repository(t *testing.T) (folder string, run func(name string, args ...string) string) {
	t.Helper()
	folder = t.TempDir()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"Makefile": string(makefile), ".gitignore": "/bin/\n", "bin/release": "#!/bin/sh\necho release \"$@\"\n",
		"bin/go": "#!/bin/sh\nexit 1\n",
	} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run = func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(folder, "bin")+":"+os.Getenv("PATH"), "MAKEFLAGS=", "VERSION=v1.4.0")
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, output)
		}
		return string(output)
	}
	run("git", "init", "-q")
	run("git", "add", ".")
	run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "commit", "-qm", "one")
	return folder, run
}

// TestPackSaysWhetherFilesChanged packs a tag, whose name cannot say that.
func TestPackSaysWhetherFilesChanged(t *testing.T) {
	folder, run := repository(t)
	const changed, inspected = " -changed -out signed\n", "release inspect signed\n"
	pack := func() string { return run("make", "--silent", "pack", "DIST=signed") }
	if got := pack(); strings.Contains(got, changed) || !strings.HasSuffix(got, inspected) {
		t.Errorf("nothing has changed, and it runs\n%s", got)
	}
	if err := os.WriteFile(filepath.Join(folder, "new.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := pack(); !strings.Contains(got, changed) {
		t.Errorf("there is a new file, and it runs\n%s", got)
	}
	if err := os.Remove(filepath.Join(folder, ".git", "HEAD")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("make", "pack")
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("the changes are unknown, and it runs\n%s", output)
	}
}
