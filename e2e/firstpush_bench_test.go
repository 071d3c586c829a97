//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkFirstPush compares the first push of a built kubelet.exe, in one command without a node file, with the same
// done by hand with scp and sc.exe. The node's service kubelet is the real kubelet, which has joined a real control
// plane. swdt has never contacted the node: neither its agent nor an earlier build is there. Each iteration ends when the
// service runs the new file. docs/benchmarks.md has results.
func BenchmarkFirstPush(b *testing.B) {
	n := newNewcomer(b, newPodCluster(b))
	for _, way := range []struct {
		name string
		push func(testing.TB)
	}{
		{"swdt", n.swdt("--to", "win-1", "--accept-new-host-key")},
		{"by hand", n.byHand},
	} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				n.neverContacted(b)
				b.StartTimer()
				way.push(b)
				b.StopTimer()
				n.expectBuild(b, n.built)
				ok(b, "push", "-c", n.before)
				b.StartTimer()
			}
		})
	}
}

// newcomer is a user who has a built kubelet.exe and an SSH name of the node, and nothing else.
type newcomer struct {
	podCluster
	home   string // has .ssh/config
	folder string // has kubelet.exe
	built  string // the path of kubelet.exe
	before string // a node file that puts the previous kubelet back
}

func newNewcomer(b *testing.B, c podCluster) *newcomer {
	b.Helper()
	n := &newcomer{podCluster: c, folder: b.TempDir()}
	n.built = filepath.Join(n.folder, "kubelet.exe")
	build, err := os.ReadFile(lab(b, "node/kubelet-1.36.3-edited.exe"))
	if err == nil {
		err = os.WriteFile(n.built, build, 0o755)
	}
	if err != nil {
		b.Fatal(err)
	}
	n.before = nodeFile(b, credentialsOf(b, c.cluster.sandboxInfo), provisioner("kubelet", "",
		lab(b, "node/kubelet-1.36.3.exe"), kubeletExe, ""))
	return n
}

// neverContacted gives the user a new home, and removes from the node what earlier iterations left.
func (n *newcomer) neverContacted(b *testing.B) {
	b.Helper()
	host, port, err := net.SplitHostPort(n.cluster.Hostname)
	if err != nil {
		b.Fatal(err)
	}
	credentials := map[string]string{}
	for line := range strings.Lines(credentialsOf(b, n.cluster.sandboxInfo)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		credentials[name] = value
	}
	n.home = b.TempDir()
	text := fmt.Sprintf("Host win-1\n  HostName %s\n  Port %s\n  User %s\n  IdentityFile %s\n", host, port,
		credentials["username"], credentials["privateKey"])
	drive := filepath.Join(n.cluster.Prefix, "drive_c")
	err = errors.Join(os.Mkdir(filepath.Join(n.home, ".ssh"), 0o700),
		os.WriteFile(n.sshConfig(), []byte(text), 0o600),
		os.RemoveAll(filepath.Join(drive, "ProgramData", "swdt", "agent")),
		os.RemoveAll(filepath.Join(drive, "k", "kubelet.exe.swdt-old")))
	if err != nil {
		b.Fatal(err)
	}
}

func (n *newcomer) sshConfig() string { return filepath.Join(n.home, ".ssh", "config") }

// swdt returns the push in one command.
func (n *newcomer) swdt(flags ...string) func(testing.TB) {
	return func(t testing.TB) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, environment(t, "SWDT_BIN"), append([]string{"push", "./kubelet.exe"}, flags...)...)
		cmd.Dir = n.folder
		cmd.Env = append(os.Environ(), "HOME="+n.home, "XDG_CACHE_HOME="+filepath.Join(n.home, "cache"),
			"XDG_CONFIG_HOME="+filepath.Join(n.home, "config"))
		out, err := cmd.CombinedOutput()
		t.Logf("$ swdt push ./kubelet.exe %s\n%s", strings.Join(flags, " "), out)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// byHand copies the file beside the old one, stops the service, exchanges the files and starts the service. Unlike swdt,
// it verifies nothing, keeps no binary for a rollback, and looks only at the service's state.
func (n *newcomer) byHand(t testing.TB) {
	t.Helper()
	options := []string{"-F", n.sshConfig(), "-o", "StrictHostKeyChecking=accept-new", "-o", "LogLevel=ERROR",
		"-o", "UserKnownHostsFile=" + filepath.Join(n.home, ".ssh", "known_hosts")}
	run(t, "scp", append(options, "-q", n.built, "win-1:C:/k/kubelet.exe.new")...)
	onNode := func(command string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "ssh", append(options, "win-1", command)...).CombinedOutput()
		return string(out), err
	}
	// Under Wine, the state stays STOP_PENDING after the process has ended. So the commands that need its end are repeated.
	for _, command := range []string{
		"sc.exe stop kubelet", `move /y C:\k\kubelet.exe.new C:\k\kubelet.exe`, "sc.exe start kubelet",
		`sc.exe query kubelet | find "RUNNING"`,
	} {
		within(t, time.Minute, command, func() error {
			out, err := onNode(command)
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
}

// expectBuild fails the test unless the node has the file.
func (n *newcomer) expectBuild(t testing.TB, path string) {
	t.Helper()
	run(t, "cmp", path, filepath.Join(n.cluster.Prefix, "drive_c", "k", "kubelet.exe"))
}
