//go:build linux || darwin

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// withPlugin writes a kubeconfig whose user gets credentials of this shell script.
func withPlugin(t *testing.T, script string) (kubeconfig string) {
	t.Helper()
	folder := t.TempDir()
	plugin, kubeconfig := filepath.Join(folder, "plugin"), filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
users: [{name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: IfAvailable}}}]
`, plugin)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// clusterCompletions are the command lines whose completion asks the cluster of a kubeconfig.
func clusterCompletions(kubeconfig string) map[string][]string {
	return map[string][]string{
		"nodes of --via":         {"__complete", "status", "--via", "kubernetes,kubeconfig=" + kubeconfig, "--node", ""},
		"nodes of cluster check": {"__complete", "cluster", "check", "--kubeconfig", kubeconfig, "--node", ""},
		"Services":               {"__complete", "capture", "--kubeconfig", kubeconfig, "--service", ""},
	}
}

// TestCompletionGivesPluginsNoStdin completes at a terminal, whose keys belong to the user's shell.
func TestCompletionGivesPluginsNoStdin(t *testing.T) {
	w := newWorkplace(t)
	for name := range clusterCompletions("") {
		t.Run(name, func(t *testing.T) {
			info := filepath.Join(t.TempDir(), "info")
			kubeconfig := withPlugin(t, `printf %s "$KUBERNETES_EXEC_INFO" >`+info+"\nexit 1\n")
			sitWith(t, w, clusterCompletions(kubeconfig)[name]...).ends(0)
			got, err := os.ReadFile(info)
			if err != nil || !strings.Contains(string(got), `"interactive":false`) {
				t.Errorf("%v: the plugin was started with %s", err, got)
			}
		})
	}
}

// TestCompletionEndsBeforeItsPlugin ends the context of a completion once the plugin runs, which lasts a minute.
func TestCompletionEndsBeforeItsPlugin(t *testing.T) {
	for name := range clusterCompletions("") {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			started, ended := filepath.Join(folder, "started"), filepath.Join(folder, "ended")
			if err := syscall.Mkfifo(started, 0o600); err != nil {
				t.Fatal(err)
			}
			pipe, err := os.OpenFile(started, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			if err := pipe.SetReadDeadline(time.Now().Add(hung)); err != nil {
				t.Fatal(err)
			}
			kubeconfig := withPlugin(t, fmt.Sprintf(
				"sleep 60 &\ntrap \"kill $!; exit 1\" TERM\necho $$ >%s\nwait $!\necho >%s\nexit 1\n", started, ended))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			killed := make(chan func(), 1)
			go func() {
				defer cancel()
				line, _ := bufio.NewReader(pipe).ReadString('\n')
				killed <- func() { kill(t, strings.TrimSpace(line)) }
			}()
			var out, story bytes.Buffer
			code := cli.Run(ctx, ui.Streams{Out: &out, Err: &story}, clusterCompletions(kubeconfig)[name],
				cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
			if _, err := os.Stat(ended); err == nil {
				t.Errorf("exit code %d: the completion has waited for the plugin", code)
			} else {
				(<-killed)()
			}
			if strings.Count(out.String(), "\n") != 1 {
				t.Errorf("it offers %q", out.String())
			}
		})
	}
}

// kill ends a plugin and its sleep.
func kill(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err == nil {
		err = syscall.Kill(number, syscall.SIGTERM)
	}
	if err != nil {
		t.Errorf("end the plugin: %v", err)
	}
}
