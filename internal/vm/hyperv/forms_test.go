package hyperv_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/hyperv/hypervtest"
)

// The names of states are those of the enumeration VMState of the module Hyper-V. A guest that hibernates is off;
// Start-VM resumes it.
func TestStates(t *testing.T) {
	h, d := newHost(t)
	m, ctx := machine(t, "m"), t.Context()
	check(t, d.Create(ctx, m))
	for name, want := range map[string]vm.State{
		"Off": vm.Stopped, "Hibernated": vm.Stopped, "Saved": vm.Stopped, "OffCritical": vm.Stopped,
		"Running": vm.Running, "ForceShutdown": vm.Running, "ForceReboot": vm.Running,
		"Paused": vm.Paused, "StartingCritical": vm.Paused, "ComponentServicing": vm.Paused,
	} {
		h.vm(t, m, func(v *hypervtest.VM) { v.State = name })
		status, err := d.Status(ctx, m)
		if err != nil || status.State != want {
			t.Errorf("%s is %s, %v; want %s", name, status.State, err, want)
		}
	}
	h.vm(t, m, func(v *hypervtest.VM) { v.State = "Hibernated" })
	check(t, d.Start(ctx, m))
}
