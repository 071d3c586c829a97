//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/testing/netspace"
)

// dockerLimit bounds a test that makes clusters of kind.
const dockerLimit = 20 * time.Minute

// inDocker runs the test again in a new process, with a separate network and a separate Docker. It
// reports whether the caller is the new process.
func inDocker(t *testing.T) bool {
	t.Helper()
	if os.Getenv("SWDT_LAB_KIND") != "required" {
		t.Skip("makes a real cluster of kind: run make e2e")
	}
	if !netspace.EnterAsRoot(t, dockerLimit) {
		return false
	}
	startDocker(t)
	return true
}

// startDocker starts Docker in the test's network, with separate folders, and sets DOCKER_HOST for
// docker and swdt. Docker ends with the test.
func startDocker(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	socket := filepath.Join(folder, "docker.sock")
	wrapper, err := filepath.Abs("../lab/kind/runc.sh")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(folder, "dockerd.log"))
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command("dockerd", "--data-root", filepath.Join(folder, "data"),
		"--exec-root", filepath.Join(folder, "exec"), "--pidfile", filepath.Join(folder, "pid"),
		"--host", "unix://"+socket, "--add-runtime", "lab="+wrapper, "--default-runtime", "lab")
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	t.Cleanup(func() {
		removeContainers(t)
		_ = server.Process.Signal(syscall.SIGTERM)
		err := server.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("dockerd: %v\n%s", err, lastLines(string(text), 30))
		}
		_ = log.Close()
	})
	within(t, time.Minute, "Docker answers", func() error {
		out, err := exec.Command("docker", "version").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// removeContainers removes all containers, since their processes would outlive Docker.
func removeContainers(t *testing.T) {
	if ids := strings.Fields(run(t, "docker", "ps", "--all", "--quiet")); len(ids) > 0 {
		run(t, "docker", append([]string{"rm", "--force", "--volumes"}, ids...)...)
	}
}

// lastLines returns the last lines of a text, at most count.
func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(len(lines)-count, 0):], "\n")
}

// kindImage is the name of the lab's node image of kind in the test's Docker.
const kindImage = "lab/node:v1.36.3"

// loadKindImage loads the lab's node image of kind into the test's Docker.
func loadKindImage(t *testing.T) {
	t.Helper()
	run(t, "docker", "import", "--change", "ENV container=docker",
		"--change", `ENTRYPOINT ["/usr/local/bin/entrypoint","/sbin/init"]`,
		lab(t, "kind/node-v1.36.3.tar"), kindImage)
}

// inventory returns the names of Docker's containers, volumes and networks.
func inventory(t *testing.T) (names []string) {
	t.Helper()
	for _, list := range [][]string{
		{"ps", "--all", "--format", "container {{.Names}}"}, {"volume", "ls", "--format", "volume {{.Name}}"},
		{"network", "ls", "--format", "network {{.Name}}"},
	} {
		for line := range strings.Lines(run(t, "docker", list...)) {
			names = append(names, strings.TrimSpace(line))
		}
	}
	slices.Sort(names)
	return names
}

// ownHosts replaces /etc/hosts for the test's processes, since Wine asks the system for the
// addresses of names.
func ownHosts(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	mountOver(t, file, "/etc/hosts")
}

// mountOver makes a file appear at another path for the test's processes, until the test ends.
func mountOver(t *testing.T, file, path string) {
	t.Helper()
	if err := syscall.Mount(file, path, "", syscall.MS_BIND, ""); err != nil {
		t.Fatalf("mount %s over %s: %v", file, path, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, 0); err != nil {
			t.Error(err)
		}
	})
}
