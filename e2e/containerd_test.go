//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/cases"
)

// TestRealContainerd tests the workflow of the tool's first users: containerd 1.7.12 runs as a
// service, swdt pushes another, and then rolls back to 1.7.12. The other is a developer's build of 1.7.12, and an
// older version.
func TestRealContainerd(t *testing.T) {
	t.Parallel()
	for _, front := range cases.Of(t, fronts(), 2) {
		for _, other := range []string{"1.7.12-dev", "1.6.27"} {
			t.Run(front.name+"/"+other, func(t *testing.T) { testOtherContainerd(t, front.credentials, other) })
		}
	}
}

func testOtherContainerd(t *testing.T, front func(*testing.T) string, other string) {
	provisioner := containerdProvisioner(t, other)
	credentials := front(t)
	first := nodeFile(t, credentials, containerdProvisioner(t, usualContainerd))
	second := nodeFile(t, credentials, provisioner)
	witness := windowsProgram(t, "criversion")

	// On a bare node, swdt only places the file, since there is no service yet.
	r := ok(t, "push", "-c", first, "--accept-new-host-key")
	if !strings.Contains(r.stdout, "no service") {
		t.Errorf("the result does not say that there is no service")
	}
	ok(t, "exec", "-c", first, "--", containerdExe, "--register-service", "--log-file", `C:\containerd.log`)
	ok(t, "exec", "-c", first, "--", "net", "start", "containerd")
	ok(t, "cp", "-c", first, witness, `node:C:\criversion.exe`)
	expectRuntime(t, first, "v1.7.12", "1.7.12")

	pushed := decoded[report](t, ok(t, "push", "-c", second, "-o", "json"))
	c := pushed.Nodes[0].Components[0]
	switch {
	case c.Action != "replaced":
		t.Errorf("pushed: c.Action is %q, want %q", c.Action, "replaced")
	case c.Service.State != "running":
		t.Errorf("pushed: c.Service.State is %q, want %q", c.Service.State, "running")
	case c.Version.After != other:
		t.Errorf("pushed: c.Version.After is %q, want %q", c.Version.After, other)
	case c.Version.Before != "1.7.12":
		t.Errorf("pushed: c.Version.Before is %q, want %q", c.Version.Before, "1.7.12")
	}
	expectRuntime(t, first, other)

	again := decoded[report](t, ok(t, "push", "-c", second, "-o", "json"))
	if again.Nodes[0].Result != "unchanged" {
		t.Errorf("again: %+v", again)
	}

	ok(t, "rollback", "containerd", "-c", second)
	expectRuntime(t, first, "v1.7.12", "1.7.12")
	expectHistory(t, second)
	status := ok(t, "status", "-c", second)
	if !strings.Contains(status.stdout, "1.7.12") {
		t.Errorf("status: %s", status.stdout)
	}
}

// expectHistory checks that the node remembers its three pushes, and returns to the second one and back.
func expectHistory(t *testing.T, config string) {
	t.Helper()
	history := decoded[struct {
		Nodes []struct {
			Pushes []struct {
				Number          int
				Command, Result string
				Journal         bool
				Components      []struct{ Kept string }
			}
		}
	}](t, ok(t, "history", "-c", config, "-o", "json"))
	var got []string
	for _, p := range history.Nodes[0].Pushes {
		got = append(got, fmt.Sprintf("%d %s %s %s %v", p.Number, p.Command, p.Result, p.Components[0].Kept, p.Journal))
	}
	want := []string{"1 push committed present false", "2 push committed node false", "3 rollback committed present false"}
	if !slices.Equal(got, want) {
		t.Errorf("the history is %q, want %q", got, want)
	}
	for _, number := range []string{"2", "1"} {
		back := decoded[report](t, ok(t, "rollback", "--to-push", number, "-c", config, "-o", "json"))
		if c := back.Nodes[0].Components[0]; c.Action != "replaced" || c.Service.State != "running" {
			t.Errorf("back to push %s: %+v", number, c)
		}
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
