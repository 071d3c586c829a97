//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const wincat = `C:\windows\system32\wincat.exe`

// TestStreamsOfRealContainerd checks the streams of the published crictl, which knows nothing of
// swdt, with two versions of the real containerd over SSH. TestCommandsOverBothWays checks them over both ways to
// a node of a cluster. A process of `crictl exec -it` has pipes, since the lab's
// shim has no terminals; the terminal is crictl's own.
func TestStreamsOfRealContainerd(t *testing.T) {
	if os.Getenv("SWDT_LAB_KIND") != "required" {
		t.Skip("needs the lab's crictl: run make e2e")
	}
	for _, version := range []string{"1.7.12", "2.4.2"} {
		t.Run(version, func(t *testing.T) { testStreams(t, newPodNode(t, version)) })
	}
}

func testStreams(t *testing.T, n podNode) {
	ok(t, "cp", "-c", n.config, windowsProgram(t, "wincat"), "node:"+wincat)
	c := crictl{endpoint: startProxy(t, n.config).endpoint}
	p := n.runPod(t, "streams", true, "--cores", "0")
	c.testStreams(t, p, func(t *testing.T) {
		id := n.runEcho(t, p)
		c.testAttach(t, id)
		n.removeEnded(t, id)
	})
	n.removePod(t, p)
}

// testStreams runs all streams of a pod. attach calls testAttach for a container that runs `wincat echo`.
func (c crictl) testStreams(t *testing.T, p pod, attach func(*testing.T)) {
	t.Run("exec", func(t *testing.T) { c.testExec(t, p) })
	t.Run("attach", attach)
	t.Run("port-forward", func(t *testing.T) { c.testPortForward(t, p) })
}

// crictl is the published crictl, as a client of the proxy.
type crictl struct{ endpoint string }

func (c crictl) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, lab(t, "linux/crictl"), append([]string{"--runtime-endpoint", c.endpoint,
		"--image-endpoint", c.endpoint, "--timeout", "1m"}, args...)...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// run runs crictl to its end.
func (c crictl) run(t *testing.T, stdin []byte, args ...string) result {
	t.Helper()
	cmd := c.command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	var exited *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exited) {
		t.Fatalf("crictl: %v", err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func (c crictl) testExec(t *testing.T, p pod) {
	if r := c.run(t, nil, "exec", p.container, "cmd", "/c", "echo hello"); r.code != 0 ||
		strings.TrimSpace(r.stdout) != "hello" {
		t.Errorf("a command: %v", r)
	}
	sent := randomLines(t)
	r := c.run(t, sent, "exec", "-i", p.container, wincat, "copy")
	if r.code != 0 || r.stdout != string(sent) || !strings.Contains(r.stderr, "1048576 bytes") {
		t.Errorf("stdin and its end: exit code %d, %d bytes, stderr %q", r.code, len(r.stdout), r.stderr)
	}
	if r := c.run(t, nil, "exec", p.container, "cmd", "/c", "exit 7"); !strings.Contains(r.String(), "exit code 7") &&
		r.code != 7 {
		t.Errorf("an exit code: %v", r)
	}
	c.testTerminal(t, p)
	if r := c.run(t, nil, "exec", "--sync", p.container, "cmd", "/c", "echo hello"); r.code != 0 ||
		strings.TrimSpace(r.stdout) != "hello" {
		t.Errorf("a command without a stream: %v", r)
	}
}

// testTerminal types into `crictl exec -it`, changes the size of its terminal, and ends the program.
func (c crictl) testTerminal(t *testing.T, p pod) {
	cmd := c.command(t, "exec", "-it", p.container, wincat, "echo")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	shown := bufio.NewScanner(terminal)
	for _, line := range []string{"hello", "end"} {
		if _, err := io.WriteString(terminal, line+"\n"); err != nil {
			t.Fatal(err)
		}
		found := false
		for !found && shown.Scan() {
			found = strings.Contains(shown.Text(), "echo: "+line)
		}
		if !found {
			t.Errorf("the program's answer to %q is not shown: %v", line, shown.Err())
		}
		if err := pty.Setsize(terminal, &pty.Winsize{Rows: 50, Cols: 120}); err != nil {
			t.Error(err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, terminal) }() // ends with the terminal
	if err := cmd.Wait(); err != nil {
		t.Errorf("crictl exec -it: %v", err)
	}
}

// randomLines returns a megabyte of text.
func randomLines(t *testing.T) []byte {
	t.Helper()
	text := make([]byte, 1<<20)
	if _, err := rand.Read(text); err != nil {
		t.Fatal(err)
	}
	for i := range text {
		text[i] = 'a' + text[i]%26
	}
	return text
}

// runEcho starts a container that echoes the lines of its stdin, and returns its ID.
func (n podNode) runEcho(t *testing.T, p pod) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	config := &runtimev1.PodSandboxConfig{
		Metadata: &runtimev1.PodSandboxMetadata{Name: p.name, Uid: p.name, Namespace: "default"},
		Windows: &runtimev1.WindowsPodSandboxConfig{
			SecurityContext: &runtimev1.WindowsSandboxSecurityContext{HostProcess: true},
		},
		LogDirectory: p.logs,
	}
	created, err := n.runtime.CreateContainer(ctx, &runtimev1.CreateContainerRequest{
		PodSandboxId: p.sandbox, SandboxConfig: config,
		Config: &runtimev1.ContainerConfig{
			Metadata: &runtimev1.ContainerMetadata{Name: "echo"},
			Image:    &runtimev1.ImageSpec{Image: n.registry + "/burn:1"},
			Command:  []string{wincat, "echo"}, Stdin: true, LogPath: "echo.log",
			Windows: &runtimev1.WindowsContainerConfig{
				SecurityContext: &runtimev1.WindowsContainerSecurityContext{HostProcess: true},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.runtime.StartContainer(ctx,
		&runtimev1.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		t.Fatal(err)
	}
	return created.ContainerId
}

// removeEnded removes a container whose program has ended. containerd may need some tries until it knows about the
// end, if the shim ended first.
func (n podNode) removeEnded(t *testing.T, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	within(t, commandLimit, "the container has ended", func() error {
		r, err := n.runtime.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: id})
		if err == nil && r.GetStatus().GetState() != runtimev1.ContainerState_CONTAINER_EXITED {
			err = errors.New(r.GetStatus().GetState().String())
		}
		return err
	})
	if _, err := n.runtime.RemoveContainer(ctx, &runtimev1.RemoveContainerRequest{ContainerId: id}); err != nil {
		t.Error(err)
	}
}

// testAttach attaches to a running program, speaks with it, and ends with it.
func (c crictl) testAttach(t *testing.T, container string) {
	cmd := c.command(t, "attach", "-i", container)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(stdout)
	for _, line := range []string{"hello", "end"} {
		if _, err := io.WriteString(stdin, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() || strings.TrimSpace(answers.Text()) != "echo: "+line {
			t.Errorf("the program's answer to %q: %q, %v", line, answers.Text(), answers.Err())
		}
	}
	_ = stdin.Close() // the program has ended
	if err := cmd.Wait(); err != nil {
		t.Errorf("crictl attach: %v", err)
	}
}

// testPortForward sends bytes to a server of this machine, which shares its loopback with the pods of
// a Wine node, and back.
func (c crictl) testPortForward(t *testing.T, p pod) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	_, port, err := net.SplitHostPort(server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.command(t, "port-forward", p.sandbox, ":"+port)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // crictl ends by the signal
	}()
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatalf("crictl port-forward printed nothing: %v", lines.Err())
	}
	found := regexp.MustCompile(`Forwarding from 127\.0\.0\.1:(\d+) `).FindStringSubmatch(lines.Text())
	if found == nil {
		t.Fatalf("crictl port-forward printed %q", lines.Text())
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+found[1])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := randomLines(t)
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	if err := conn.SetDeadline(time.Now().Add(commandLimit)); err != nil {
		t.Fatal(err)
	}
	received := make([]byte, len(sent))
	n, err := io.ReadFull(conn, received)
	if err != nil || !bytes.Equal(received, sent) {
		t.Errorf("%d of %d bytes came back: %v", n, len(sent), err)
	}
}
