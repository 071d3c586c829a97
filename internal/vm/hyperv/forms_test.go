package hyperv_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/hyperv/hypervtest"
)

// Set-VM of Windows Server 2016 has no -AutomaticCheckpointsEnabled (hashicorp/vagrant#10251), and such a host makes no
// automatic checkpoints.
func TestServer2016(t *testing.T) {
	h, d := newHost(t)
	m, ctx := machine(t, "m"), t.Context()
	h.change(t, func(h *hypervtest.Host) { h.Server2016 = true })
	check(t, d.Create(ctx, m))
	check(t, d.Start(ctx, m))
	h.vm(t, m, func(v *hypervtest.VM) {
		if v.Settings["Set-VM CheckpointType"] != "Standard" {
			t.Errorf("the settings are %v", v.Settings)
		}
	})
}

// A newer Windows makes automatic checkpoints unless it is asked not to.
func TestNoAutomaticCheckpoints(t *testing.T) {
	h, d := newHost(t)
	m := machine(t, "m")
	check(t, d.Create(t.Context(), m))
	h.vm(t, m, func(v *hypervtest.VM) {
		if v.Settings["Set-VM AutomaticCheckpointsEnabled"] != "false" {
			t.Errorf("the settings are %v", v.Settings)
		}
	})
}

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
