//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// secondServer is a further kube-apiserver of the cluster, as a cluster with several of them has. It uses the same
// etcd, and can restart while the cluster's own programs keep theirs.
type secondServer struct {
	t       *testing.T
	args    []string
	process *exec.Cmd
	ready   []string // the arguments of kubectl that ask whether it is ready
}

// startSecondServer starts it and returns a node file that leads through it.
func (c throughCluster) startSecondServer(t *testing.T, provisioners string) (s *secondServer, file string) {
	t.Helper()
	text, err := os.ReadFile(c.cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	own := regexp.MustCompile(`https://127\.0\.0\.1:(\d+)`).FindSubmatch(text)
	if own == nil {
		t.Fatalf("no server in %s", c.cluster.Kubeconfig)
	}
	port := freePort(t)
	s = &secondServer{t: t, args: argumentsOf(t, "--secure-port="+string(own[1]))}
	for i, arg := range s.args {
		if strings.HasPrefix(arg, "--secure-port=") {
			s.args[i] = "--secure-port=" + port
		}
	}
	kubeconfig := textFile(t, strings.ReplaceAll(string(text), string(own[0]), "https://127.0.0.1:"+port))
	s.ready = []string{"--kubeconfig", kubeconfig, "get", "--raw", "/readyz"}
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	s.start()
	return s, nodeFile(t, strings.Replace(c.credentials, c.cluster.Kubeconfig, kubeconfig, 1), provisioners)
}

// argumentsOf returns the command line of the process that has an argument.
func argumentsOf(t *testing.T, argument string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"); err == nil &&
			slices.Contains(args, argument) {
			return args
		}
	}
	t.Fatalf("no process has the argument %s", argument)
	return nil
}

func (s *secondServer) start() {
	s.t.Helper()
	s.process = exec.Command(s.args[0], s.args[1:]...)
	var log bytes.Buffer
	s.process.Stdout, s.process.Stderr = &log, &log
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	within(s.t, commandLimit, "the second API server is ready", func() error {
		output, err := exec.Command(lab(s.t, "linux/kubectl"), s.ready...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
}

// end ends the process by a signal and waits until it has ended.
func (s *secondServer) end(signal syscall.Signal) {
	s.t.Helper()
	if s.process.ProcessState != nil {
		return
	}
	if err := s.process.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
	_ = s.process.Wait() // a program that a signal ends has no exit code
}

// restart ends the process at once, as the end of its memory does, and starts it again.
func (s *secondServer) restart() {
	s.t.Helper()
	s.end(syscall.SIGKILL)
	s.start()
}

// inBackground is a swdt in the background, with its stdout and stderr as one.
type inBackground struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	shown strings.Builder
}

// begin starts swdt and waits until it has printed a text.
func begin(t *testing.T, text string, args ...string) *inBackground {
	t.Helper()
	output, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { output.Close() })
	// With another cache, nothing is known about what the node has: all of a file is sent.
	r := &inBackground{cmd: exec.Command(environment(t, "SWDT_BIN"), args...), lines: bufio.NewScanner(output)}
	r.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	r.cmd.Stdout, r.cmd.Stderr = input, input
	err = errors.Join(r.cmd.Start(), input.Close())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() }) // if the test passed, swdt has already ended
	limit := time.AfterFunc(commandLimit, func() { _ = r.cmd.Process.Kill() })
	defer limit.Stop()
	for r.lines.Scan() {
		fmt.Fprintln(&r.shown, r.lines.Text())
		if strings.Contains(r.lines.Text(), text) {
			return r
		}
	}
	t.Fatalf("swdt has not printed %q:\n%s", text, &r.shown)
	return nil
}

// end waits for the end of swdt and returns its exit code.
func (r *inBackground) end(t *testing.T) int {
	t.Helper()
	limit := time.AfterFunc(commandLimit, func() { _ = r.cmd.Process.Kill() })
	defer limit.Stop()
	for r.lines.Scan() {
		fmt.Fprintln(&r.shown, r.lines.Text())
	}
	_ = r.cmd.Wait() // the exit code is what counts
	t.Logf("swdt %s:\n%s", strings.Join(r.cmd.Args[1:], " "), &r.shown)
	return r.cmd.ProcessState.ExitCode()
}

// survivesRestarts restarts the API server that carries the stream while swdt pushes, follows a log, and runs a
// program. Only the program cannot go on.
func (c throughCluster) survivesRestarts(t *testing.T) {
	server, file := c.startSecondServer(t, provisioner("bench", "", lab(t, "node/kubelet-1.36.3.exe"),
		`C:\bench\restart.exe`, ""))
	t.Run("push", func(t *testing.T) {
		p := begin(t, "sending bench", "push", "-c", file)
		server.restart()
		if code := p.end(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
		c.expectPushed(t, file, "unchanged")
	})
	t.Run("logs", func(t *testing.T) {
		log := growing{t: t, path: filepath.Join(c.cluster.Prefix, "drive_c", "restart.log")}
		log.add("begin\n")
		f := follow(t, "logs", "-f", "--tail", "-1", "-o", "json", "-c", file, `file:C:\restart.log`)
		f.await(t, "begin")
		server.restart()
		log.add("end\n")
		f.await(t, "end")
		f.end(t)
	})
	t.Run("exec", func(t *testing.T) {
		p := begin(t, "begun", "exec", "-c", file, "--", "cmd", "/c", "echo begun& ping -n 600 127.0.0.1")
		server.restart()
		if code := p.end(t); code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
	})
	ok(t, "status", "-c", file)
	c.expectNoViaPods(t)
}
