//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealContainerd tests the workflow of the tool's first users: containerd 1.7.12 runs as a
// service, swdt pushes 1.6.27, and then rolls back to 1.7.12.
func TestRealContainerd(t *testing.T) {
	t.Parallel()
	for name, front := range fronts() {
		t.Run(name, func(t *testing.T) {
			credentials := front(t)
			witness := criversion(t)
			first := nodeFile(t, credentials, containerdProvisioner(t, "1.7.12"))
			second := nodeFile(t, credentials, containerdProvisioner(t, "1.6.27"))

			// On a bare node, swdt only places the file, since there is no service yet.
			r := ok(t, "kubernetes", "-c", first, "--accept-new-host-key")
			if !strings.Contains(r.stdout, "no service") {
				t.Errorf("the result does not say that there is no service")
			}
			ok(t, "exec", "-c", first, "--", containerdExe, "--register-service", "--log-file", `C:\containerd.log`)
			ok(t, "exec", "-c", first, "--", "net", "start", "containerd")
			ok(t, "cp", "-c", first, witness, `node:C:\criversion.exe`)
			expectRuntime(t, first, "v1.7.12", "1.7.12")

			pushed := decoded[report](t, ok(t, "kubernetes", "-c", second, "-o", "json"))
			c := pushed.Nodes[0].Components[0]
			switch {
			case c.Action != "replaced":
				t.Errorf("pushed: c.Action is %q, want %q", c.Action, "replaced")
			case c.Service.State != "running":
				t.Errorf("pushed: c.Service.State is %q, want %q", c.Service.State, "running")
			case c.Version.After != "1.6.27":
				t.Errorf("pushed: c.Version.After is %q, want %q", c.Version.After, "1.6.27")
			case c.Version.Before != "1.7.12":
				t.Errorf("pushed: c.Version.Before is %q, want %q", c.Version.Before, "1.7.12")
			}
			expectRuntime(t, first, "1.6.27")

			again := decoded[report](t, ok(t, "kubernetes", "-c", second, "-o", "json"))
			if again.Nodes[0].Result != "unchanged" {
				t.Errorf("again: %+v", again)
			}

			ok(t, "rollback", "containerd", "-c", second)
			expectRuntime(t, first, "v1.7.12", "1.7.12")
			status := ok(t, "status", "-c", second)
			if !strings.Contains(status.stdout, "1.7.12") {
				t.Errorf("status: %s", status.stdout)
			}
		})
	}
}

func expectRuntime(t *testing.T, config string, versions ...string) {
	t.Helper()
	r := ok(t, "exec", "-c", config, "--", `C:\criversion.exe`)
	for _, version := range versions {
		if strings.TrimSpace(r.stdout) == "containerd "+version {
			return
		}
	}
	t.Errorf("CRI says %q, want one of %v", strings.TrimSpace(r.stdout), versions)
}

func criversion(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "criversion.exe")
	build := exec.Command("go", "build", "-o", path, "./criversion")
	build.Env = append(build.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build criversion: %v\n%s", err, out)
	}
	return path
}
