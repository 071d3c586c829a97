//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"

	"github.com/swdt-dev/swdt/internal/testing/proxytest"
)

// TestGoInstall checks that `go install` is a whole installation: it installs this source from a module proxy and a
// checksum database of its own, without the network. The swdt that it makes has no agent inside; it builds the agent at
// the first contact with a Wine node, the same bytes as `make build`, and pushes to the node.
func TestGoInstall(t *testing.T) {
	if os.Getenv("SWDT_GO_INSTALL") == "" {
		t.Skip("make nightly runs it: it compiles swdt and its agent anew")
	}
	const path, version = "github.com/swdt-dev/swdt", "v0.9.0"
	source := copyOfSource(t)
	published := proxytest.Publish(t, module.Version{Path: path, Version: version}, source, sumsOf(t, source))
	bin := t.TempDir()
	environ := append(append(os.Environ(), published.Environ...), "GOBIN="+bin, "GOFLAGS=-trimpath", "CGO_ENABLED=0",
		"XDG_CACHE_HOME="+t.TempDir())
	for i, setting := range environ {
		if proxy, ok := strings.CutPrefix(setting, "GOPROXY="); ok && i >= len(os.Environ()) {
			environ[i] = "GOPROXY=" + proxy + ",file://" + output(t, nil, "go", "env", "GOMODCACHE") + "/cache/download"
		}
	}
	output(t, environ, "go", "install", path+"/cmd/swdt@"+version)

	installed := filepath.Join(bin, "swdt")
	if text := output(t, environ, installed, "version", "-o", "jsonpath={.agent.hash}"); text != "" {
		t.Fatalf("it has the agent %s inside", text)
	}
	info := wineSandbox(t)
	environ = append(environ, "SWDT_CONFIG="+nodeFile(t, credentialsOf(t, info),
		provisioner("kubelet", "1.29.0", lab(t, "kubelet-v1.29.0.exe"), kubeletExe, "")))
	hash := output(t, environ, installed, "status", "-o", "jsonpath={.nodes[*].agent.hash}")
	if made := hashFile(t, filepath.Join(filepath.Dir(environment(t, "SWDT_BIN")), "swdt-agent.exe")); hash != made {
		t.Errorf("the agent is %s, and make build makes %s", hash, made)
	}
	output(t, environ, installed, "push")
}

// output runs a program, and returns its stdout without space around it. environ nil is that of the test.
func output(t *testing.T, environ []string, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = t.TempDir(), environ, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, &stderr)
	}
	t.Logf("$ %s %s\n%s%s", filepath.Base(name), strings.Join(args, " "), out, &stderr)
	return strings.TrimSpace(string(out))
}

// copyOfSource returns a copy of the files of this module that git knows.
func copyOfSource(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for file := range strings.SplitSeq(output(t, nil, "git", "-C", root, "ls-files", "-z"), "\x00") {
		if file == "" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(to, file)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// sumsOf returns a function that returns the lines of the module's go.sum for a dependency.
func sumsOf(t *testing.T, source string) func(path, version string) ([]byte, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	return func(path, version string) (lines []byte, err error) {
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, path+" "+version+" ") || strings.HasPrefix(line, path+" "+version+"/") {
				lines = append(lines, line...)
			}
		}
		if lines == nil {
			return nil, fmt.Errorf("%s %s: %w", path, version, fs.ErrNotExist)
		}
		return lines, nil
	}
}
