package kindcluster_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
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
