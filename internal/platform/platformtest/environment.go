package platformtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// processEnvironment: a process has the variables with which it was started.
func processEnvironment(t *testing.T, f Fixture) {
	c := f.command("childandwait", "forever")
	c.Environment = []string{"SWDT_PLATFORMTEST=a value, with = and ümläut"}
	child := pid(t, f.start(t, c).line(t))
	variables, err := f.Platform.Processes.Environment(t.Context(), child)
	check(t, err)
	if !slices.Contains(variables, c.Environment[0]) {
		t.Errorf("the process has not got %s: %q", c.Environment[0], variables)
	}
	if _, err := f.Platform.Processes.Environment(t.Context(), 0x7ffffff0); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("a process that does not exist: the error is %v, want %v", err, fault.ErrNotExist)
	}
}

// serviceEnvironment: the process of a service has the variables that the value Environment of the service's key had when
// it was started, and no others of it.
func serviceEnvironment(t *testing.T, f Fixture) {
	need(t, f.Has.ServiceEnvironment, "services with variables of their own")
	name := f.install(t, "", Behaviour{})
	key := `HKLM\SYSTEM\CurrentControlSet\Services\` + name
	has := func(pair string) bool {
		variables, err := f.Platform.Processes.Environment(t.Context(), f.await(t, name, platform.Running).PID)
		check(t, err)
		return slices.Contains(variables, pair)
	}
	const first, second = "SWDT_PLATFORMTEST=1", "SWDT_PLATFORMTEST=2"
	set := func(pairs ...string) {
		check(t, f.Platform.Registry.Set(key, platform.RegistryValue{Name: "Environment",
			Type: platform.RegistryMultiString, Strings: pairs}))
	}
	restart := func() {
		check(t, f.Platform.Services.Stop(t.Context(), name))
		f.await(t, name, platform.Stopped)
		check(t, f.Platform.Services.Start(t.Context(), name))
	}
	set(first)
	check(t, f.Platform.Services.Start(t.Context(), name))
	if !has(first) {
		t.Error("the service was started without its variable")
	}
	set(second)
	if has(second) || !has(first) {
		t.Error("a running service has got another variable")
	}
	if restart(); !has(second) {
		t.Error("the restarted service has not got the changed variable")
	}
	check(t, f.Platform.Registry.Delete(key, "Environment"))
	if restart(); has(second) {
		t.Error("the restarted service has still got the removed variable")
	}
}
