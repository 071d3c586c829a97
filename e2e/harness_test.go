//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// commandLimit bounds any one command of a test.
const commandLimit = 3 * time.Minute

// environment returns a path from an environment variable that scripts/stage.sh sets.
func environment(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run scripts/stage.sh e2e, or `make build` and lab/build.sh and set it", name)
	}
	return value
}

// lab returns the path of a program that lab/build.sh built.
func lab(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(environment(t, "SWDT_LAB"), name)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is the exit code and the output of a command.
type result struct {
	code           int
	stdout, stderr string
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s", r.code, r.stdout, r.stderr)
}

// swdt runs bin/swdt to its end.
func swdt(t testing.TB, args ...string) result {
	t.Helper()
	return swdtWithin(t, commandLimit, args...)
}

// swdtWithin is like swdt for a command that may take longer than commandLimit.
func swdtWithin(t testing.TB, limit time.Duration, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	environment(t, "SWDT_BIN")
	r, err := execute(ctx, cacheHome(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("$ swdt %s\n%s", strings.Join(args, " "), r)
	return r
}

// execute runs swdt to its end, with cache as the user's cache folder. Unlike swdtWithin, execute may
// be called from any goroutine.
func execute(ctx context.Context, cache string, args ...string) (result, error) {
	cmd := exec.CommandContext(ctx, os.Getenv("SWDT_BIN"), args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 10 * time.Second // a process that swdt leaves behind may keep the output open
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result{}, fmt.Errorf("swdt %s: %w", strings.Join(args, " "), err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}

// cacheHome returns the cache folder of swdt, which the environment of the tests sets.
func cacheHome(t testing.TB) string {
	t.Helper()
	folder, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// ok runs swdt and fails the test if the command fails.
func ok(t testing.TB, args ...string) result {
	t.Helper()
	r := swdt(t, args...)
	if r.code != 0 {
		t.Fatalf("swdt %s: exit code %d", strings.Join(args, " "), r.code)
	}
	return r
}

// decoded reads a JSON result.
func decoded[T any](t testing.TB, r result) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(r.stdout), &value); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, r.stdout)
	}
	return value
}

// sandboxInfo has the promised fields of `swdt sandbox up -o json`.
type sandboxInfo struct {
	Name, Driver, Hostname, Config, Prefix, Kubeconfig string
}

// report has the promised fields of `swdt push -o json`.
type report struct {
	Nodes []struct {
		Name, Result string
		Components   []struct {
			Name, Action, Destination, SHA256, PreviousSHA256, Message string
			Version                                                    struct{ Wanted, Before, After string }
			Service                                                    struct {
				Name, State string
				PID         uint32
			}
			Transfer struct {
				Method               string
				SizeBytes, SentBytes int64
			}
			Seconds struct{ Obtain, Transfer, Down, Healthy float64 }
		}
		Recovered []struct{ ID, Result string }
	}
	Summary struct{ Changed, Unchanged, Failed int }
}

// wineSandbox starts a Wine node behind swdt's own SSH server.
func wineSandbox(t *testing.T) sandboxInfo {
	t.Helper()
	return wineSandboxNamed(t, "e2e")
}

func wineSandboxNamed(t testing.TB, name string, more ...string) sandboxInfo {
	t.Helper()
	state := t.TempDir()
	args := append([]string{"sandbox", "up", "--driver", "wine", "--name", name, "--state-dir", state, "-o", "json"},
		more...)
	info := decoded[sandboxInfo](t, ok(t, args...))
	t.Cleanup(func() { ok(t, "sandbox", "down", "--name", name, "--state-dir", state) })
	return info
}

// nodeFile writes a node file: the sandbox's credentials and these provisioners.
func nodeFile(t testing.TB, credentials, provisioners string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.yaml")
	text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata:\n  name: node\nspec:\n  credentials:\n" +
		credentials + "  kubernetes:\n    provisioners:\n" + provisioners
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// credentialsOf returns the lines with the credentials of a sandbox's node file.
func credentialsOf(t testing.TB, info sandboxInfo) string {
	t.Helper()
	text, err := os.ReadFile(info.Config)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "  credentials:"):
			inside = true
		case inside && strings.HasPrefix(line, "    "):
			lines = append(lines, line)
		case inside && strings.TrimSpace(line) != "":
			inside = false
		}
	}
	return strings.Join(lines, "")
}

const (
	containerdExe = `C:\Program Files\containerd\bin\containerd.exe`
	kubeletExe    = `C:\k\kubelet.exe`
)

func provisioner(name, version, source, destination, more string) string {
	return fmt.Sprintf("      - name: %s\n        version: %s\n        sourceURL: %s\n        destination: %s\n%s",
		name, version, source, destination, more)
}

// usualContainerd is the version of containerd that is always in the lab.
const usualContainerd = "1.7.12"

// containerdProvisioner returns a provisioner of containerd. It skips the test if the lab was built without
// this version.
func containerdProvisioner(t *testing.T, version string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(environment(t, "SWDT_LAB"), "containerd-"+version+".exe")); err != nil &&
		!strings.HasPrefix(version, usualContainerd) {
		t.Skipf("needs containerd %s of `lab/build.sh containerds`", version)
	}
	return provisioner("containerd", version, lab(t, "containerd-"+version+".exe"), containerdExe, "")
}

// eventually calls ask until ask returns no error, for at most half a minute.
func eventually(t testing.TB, what string, ask func() error) {
	t.Helper()
	within(t, 30*time.Second, what, ask)
}

// within calls ask until ask returns no error, for at most the given time.
func within(t testing.TB, limit time.Duration, what string, ask func() error) {
	t.Helper()
	over := time.NewTimer(limit)
	defer over.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-over.C:
			t.Fatalf("not within %s: %s: %v", limit, what, err)
		}
	}
}
