//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLogs reads the logs of a real kubelet and containerd, by SSH and through the API server, and
// across a restart of both services and the rotation of a log.
func TestLogs(t *testing.T) {
	c := clusterSandbox(t)
	file := c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{})
	ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready")

	c.writeLarge(t)
	c.expectListed(t, file)
	t.Run("both ways", func(t *testing.T) { c.expectSameLines(t, file) })
	c.followsRestart(t, file)
}

// log returns the path on this machine of a log file of the node.
func (c cluster) log(name string) string {
	return filepath.Join(c.Prefix, "drive_c/var/log", name)
}

// expectListed compares `logs list` with the disk.
func (c cluster) expectListed(t *testing.T, file string) {
	t.Helper()
	listed := decoded[struct {
		Nodes []struct {
			Logs []struct {
				Source, File string
				SizeBytes    int64
			}
		}
	}](t, ok(t, "logs", "list", "-c", file, "-o", "json"))
	sizes := map[string]int64{}
	for _, log := range listed.Nodes[0].Logs {
		sizes[log.Source+" "+strings.ToLower(log.File)] = log.SizeBytes
	}
	for _, name := range []string{"kubelet", "containerd"} {
		size, found := sizes[name+` c:\var\log\`+name+`\`+name+".log"]
		info, err := os.Stat(c.log(name + "/" + name + ".log"))
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case !found:
			t.Errorf("%s is not listed: %v", name, sizes)
		case size == 0, size > info.Size(): // the file grows after the list was made
			t.Errorf("%s is listed with %d bytes, want between 1 and %d", name, size, info.Size())
		}
	}
}

// writeLarge makes a log that does not grow. The log is larger than the number of lines that swdt
// keeps in memory to merge logs.
func (c cluster) writeLarge(t *testing.T) {
	t.Helper()
	var large strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&large, "I1120 15:%02d:%02d.000000       1 x.go:1] \"line\" n=%d\n", i/60%60, i%60, i)
	}
	if err := os.WriteFile(c.log("large.log"), []byte(large.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expectSameLines reads logs by SSH and through the API server.
func (c cluster) expectSameLines(t *testing.T, file string) {
	t.Helper()
	c.needsAddress(t)
	now := time.Now().UTC().Format(time.RFC3339) // later lines might be in only one of the two answers
	for _, args := range [][]string{
		{`file:C:\var\log\large.log`, "--tail", "-1"},
		{`file:C:\var\log\large.log`, "--grep", "n=9{4}$"},
		{"containerd", `file:C:\var\log\large.log`, "--tail", "7", "-o", "json"},
		{"kubelet", "--until", now, "--tail", "5"},
	} {
		ask := append([]string{"logs", "-c", file, "--kubeconfig", c.Kubeconfig}, args...)
		ssh, api := ok(t, append(ask, "--source", "ssh")...), ok(t, append(ask, "--source", "api")...)
		if ssh.stdout == "" || ssh.stdout != api.stdout {
			t.Errorf("%v: %d bytes by SSH, %d through the API server\n%.500s\n%.500s", args, len(ssh.stdout),
				len(api.stdout), ssh.stdout, api.stdout)
		}
	}
	none := swdt(t, "logs", "some-service", "--source", "api", "-c", file, "--kubeconfig", c.Kubeconfig)
	if none.code != 1 || !strings.Contains(none.stderr, "enableSystemLogQuery: true") {
		t.Errorf("a kubelet that takes no queries: %v", none)
	}
}

// followsRestart follows two logs while their services restart, and a third log while it is
// rotated. No line is lost, and no line is printed twice.
func (c cluster) followsRestart(t *testing.T, file string) {
	t.Helper()
	push := withNodeName(t, nodeFile(t, credentialsOf(t, c.sandboxInfo), containerdProvisioner(t, "1.7.12")+
		provisioner("kubelet", "v1.36.3", lab(t, "node/kubelet-1.36.3.exe"), kubeletExe, "")), "wine-1")
	f := follow(t, "logs", "-f", "--tail", "1", "-o", "json", "-c", file, "kubelet", "containerd",
		`file:C:\var\log\large.log`)
	f.await(t, "n=9999")

	ok(t, "push", "--force", "-c", push)
	rotated := c.log("large.log")
	if err := os.Rename(rotated, c.log("large.1.log")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rotated, []byte("I1120 16:00:00.000000       1 x.go:1] \"rotated\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.await(t, "rotated")
	f.await(t, "Service stopping")
	f.await(t, "containerd successfully booted")
	f.await(t, "Started kubelet")
	shown := f.end(t)

	for _, name := range []string{"kubelet", "containerd"} {
		disk, err := os.ReadFile(c.log(name + "/" + name + ".log"))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, line := range shown {
			if line.Source == name {
				text.WriteString(line.Text + "\n")
			}
		}
		if text.Len() == 0 || !strings.Contains(strings.ReplaceAll(string(disk), "\r", ""), text.String()) {
			t.Errorf("what was shown of %s is no part of its log:\n%s", name, text.String())
		}
	}
}

// logLine has the promised fields of `swdt logs -o json`.
type logLine struct{ Source, Text string }

// follower is a running swdt that follows logs.
type follower struct {
	cmd    *exec.Cmd
	lines  chan logLine
	shown  []logLine
	stderr bytes.Buffer
}

func follow(t *testing.T, args ...string) *follower {
	t.Helper()
	f := &follower{cmd: exec.Command(environment(t, "SWDT_BIN"), args...), lines: make(chan logLine)}
	f.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheHome(t))
	f.cmd.Stderr = &f.stderr
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.cmd.Process.Kill() }) // if the test passed, swdt has already ended
	go func() {
		defer close(f.lines)
		decoder := json.NewDecoder(out)
		for {
			var line logLine
			if decoder.Decode(&line) != nil {
				return
			}
			select {
			case f.lines <- line:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return f
}

// await reads until a line with this text has been shown.
func (f *follower) await(t *testing.T, text string) {
	t.Helper()
	has := func(line logLine) bool { return strings.Contains(line.Text, text) }
	if slices.ContainsFunc(f.shown, has) {
		return
	}
	limit := time.After(commandLimit)
	for {
		select {
		case line, open := <-f.lines:
			if !open {
				t.Fatalf("it ended before %q: %s", text, f.stderr.String())
			}
			f.shown = append(f.shown, line)
			if has(line) {
				return
			}
		case <-limit:
			t.Fatalf("no line with %q came; %d others, the last %+v\n%s", text, len(f.shown),
				f.shown[max(0, len(f.shown)-2):], f.stderr.String())
		}
	}
}

// end interrupts swdt, as Ctrl-C does, and returns all lines that it has shown.
func (f *follower) end(t *testing.T) []logLine {
	t.Helper()
	if err := f.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for line := range f.lines {
		f.shown = append(f.shown, line)
	}
	var ended *exec.ExitError
	if err := f.cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != 130 {
		t.Errorf("after Ctrl-C: %v\n%s", err, f.stderr.String())
	}
	return f.shown
}
