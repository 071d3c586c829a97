package kindcluster_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// runtimes puts programs with these scripts first in PATH, and nothing else.
func runtimes(t *testing.T, scripts map[string]string) {
	t.Helper()
	folder := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
}

func TestRuntimeThatAnswersIsUsed(t *testing.T) {
	runtimes(t, map[string]string{
		"docker": "echo 'permission denied at the socket' >&2; exit 1",
		"podman": `if [ "$1" = network ]; then echo bridge; echo kind; fi`,
	})
	k, err := kindcluster.OpenKind(t.Context(), "", log.NoopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	if has, err := k.HasNetwork(t.Context()); !has || err != nil {
		t.Errorf("podman's network kind exists: %t, %v", has, err)
	}
	_, err = kindcluster.OpenKind(t.Context(), kindcluster.Docker, log.NoopLogger{})
	var none *kindcluster.NoRuntimeError
	const want = "docker ps: exit status 1: permission denied at the socket"
	if !errors.As(err, &none) || !strings.Contains(err.Error(), want) {
		t.Errorf("docker: %v", err)
	}
}

func TestNoRuntimeAnswers(t *testing.T) {
	runtimes(t, nil)
	_, err := kindcluster.OpenKind(t.Context(), "", log.NoopLogger{})
	if !errors.Is(err, exec.ErrNotFound) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"docker: it is not installed", "podman: it is not installed", "start one of them, and check with `docker ps`",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if _, err := kindcluster.OpenKind(t.Context(), "lxc", log.NoopLogger{}); err == nil {
		t.Error("lxc is accepted")
	}
}

// A command that is ended by its context says why, and not which signal ended it.
func TestEndedCommandOfARuntime(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	runtimes(t, map[string]string{"docker": `if [ "$1" = network ]; then : > ` + started + `; exec /bin/sleep 60; fi`})
	k, err := kindcluster.OpenKind(t.Context(), kindcluster.Docker, log.NoopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	reason := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		_ = wait.Condition{Name: "docker to start", Interval: 5 * time.Millisecond, Look: func(context.Context) error {
			_, err := os.Stat(started)
			return err
		}}.Wait(t.Context())
		cancel(reason)
	}()
	if _, err := k.HasNetwork(ctx); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}

// warnings counts warnings.
type warnings struct {
	ui.Discard
	count int
}

func (w *warnings) Warn(string, ...any) { w.count++ }

// swdt drops kind's warning of old control groups, which it knows by its words.
func TestKindWarnsOfCgroupsInTheWordsThatAreDropped(t *testing.T) {
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "sigs.k8s.io/kind/pkg/cluster").Output()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "internal", "create", "create.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`logger\.Warn\("(.*cgroup.*)"\)`).FindAllSubmatch(code, -1)
	if len(all) == 0 {
		t.Fatal("kind no longer warns of old control groups")
	}
	for _, one := range all {
		var said warnings
		kindcluster.Progress(&said).Warn(string(one[1]))
		if said.count > 0 {
			t.Errorf("kind's warning %q is passed on", one[1])
		}
	}
}

// Podman prints other words than Docker about the same machine.
func TestFactsOfTheRuntimesMachine(t *testing.T) {
	const docker, podman = "{{.CgroupVersion}} {{.Architecture}}", "{{.Host.CgroupsVersion}} {{.Host.Arch}}"
	for _, c := range []struct {
		program, format, prints string
		want                    kindcluster.RuntimeInfo
	}{
		{kindcluster.Docker, docker, "1 x86_64", kindcluster.RuntimeInfo{Architecture: "amd64", OldCgroups: true}},
		{kindcluster.Docker, docker, "2 aarch64", kindcluster.RuntimeInfo{Architecture: "arm64"}},
		{kindcluster.Podman, podman, "v1 amd64", kindcluster.RuntimeInfo{Architecture: "amd64", OldCgroups: true}},
		{kindcluster.Podman, podman, "v2 arm64", kindcluster.RuntimeInfo{Architecture: "arm64"}},
	} {
		runtimes(t, map[string]string{c.program: "case \"$1 $3\" in ps*) ;; 'info " + c.format + "') echo " + c.prints +
			" ;; 'image --format') echo x86_64 ;; *) exit 1 ;; esac"})
		k, err := kindcluster.OpenKind(t.Context(), c.program, log.NoopLogger{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.RuntimeInfo(t.Context())
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s prints %q: %v (-want +got):\n%s", c.program, c.prints, err, diff)
		}
		if architecture, err := k.ImageArchitecture(t.Context(), "app:v1"); err != nil || architecture != "amd64" {
			t.Errorf("the image is for %q, %v", architecture, err)
		}
	}
}
