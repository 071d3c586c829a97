package hyperv_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/hyperv"
	"github.com/swdt-dev/swdt/internal/vm/hyperv/hypervtest"
)

// Output that is not the script's is an error that shows it, and never a state.
func TestHostileOutput(t *testing.T) {
	h, d := newHost(t)
	m, ctx := machine(t, "m"), t.Context()
	check(t, d.Create(ctx, m))
	for _, output := range []string{
		"Welcome!\r\n{\"VMs\":[]}", `{"VMs":[]} Goodbye`, `{"VMs":[]}{"VMs":[]}`, `[]`, `null x`, `{"VMs":{}}`,
		`{"VMs":[{"Evil":1}]}`,
		`{"VMs":[{"Id":"x'); calc","Notes":"swdt ` + m.UUID + `","Uptime":1}]}`, `{"VMs":[{"Uptime":"1e999"}]}`, "\x00\xff",
		"{",
		strings.Repeat("[", 1<<20), strings.Repeat("x", 17<<20),
	} {
		h.change(t, func(h *hypervtest.Host) { h.Output = output })
		if status, err := d.Status(ctx, m); err == nil && status.State != vm.Absent {
			t.Errorf("%.40q: the VM is %s", output, status.State)
		} else if err == nil {
			t.Errorf("%.40q was believed", output)
		} else if len(err.Error()) > 1000 {
			t.Errorf("%.40q: an error of %d bytes", output, len(err.Error()))
		}
	}
	h.change(t, func(h *hypervtest.Host) { h.Output, h.Cut = "", 1 })
	for cut := 1; cut < 200; cut += 7 {
		h.change(t, func(h *hypervtest.Host) { h.Cut = cut })
		_, err := d.Status(ctx, m)
		if damaged, ok := errors.AsType[*hyperv.OutputError](err); !ok ||
			!strings.Contains(damaged.Error(), "cannot be read") {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
	}
}

// Wherever it fails, a failed Create leaves neither a VM nor a file.
func TestACreateThatFailsLeavesNothing(t *testing.T) {
	for name, faults := range map[string]map[string]string{
		"before the disk": {"newDisk": "there is no room"}, "after the disk": {"newDisk": "late: there is no room"},
		"before the VM": {"new": "there is no room"}, "after the VM": {"new": "late: there is no room"},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHost(t)
			m, ctx := machine(t, "m"), t.Context()
			h.change(t, func(h *hypervtest.Host) { h.Faults = faults })
			failed, ok := errors.AsType[*hyperv.ScriptError](d.Create(ctx, m))
			if !ok || !strings.Contains(failed.Error(), "there is no room") {
				t.Errorf("the error is %v", failed)
			}
			h.change(t, func(h *hypervtest.Host) {
				if len(h.VMs) > 0 {
					t.Errorf("it leaves %+v", h.VMs[0])
				}
			})
			if left, err := os.ReadDir(m.Folder); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v, %v", left, err)
			}
		})
	}
}

// A VM whose ID was not kept, since swdt was killed, is found by its notes or its folder.
func TestAnInterruptedCreateIsFound(t *testing.T) {
	for _, notes := range []bool{true, false} {
		h, d := newHost(t)
		m, ctx := machine(t, "m"), t.Context()
		check(t, d.Create(ctx, m))
		check(t, os.Remove(filepath.Join(m.Folder, "hyperv.json")))
		if !notes { // it was killed between New-VM and Set-VM
			h.vm(t, m, func(v *hypervtest.VM) { v.Notes = "" })
		}
		if status, err := d.Status(ctx, m); err != nil || status.State != vm.Stopped {
			t.Errorf("the VM is %s, %v", status.State, err)
		}
		check(t, d.Delete(ctx, m))
		h.change(t, func(h *hypervtest.Host) {
			if len(h.VMs) > 0 {
				t.Error("the VM is left")
			}
		})
	}
}

// VMs of the same name that are not swdt's are never touched.
func TestOtherVMsAreNotTouched(t *testing.T) {
	h, d := newHost(t)
	m, ctx := machine(t, "m"), t.Context()
	other := hypervtest.VM{
		ID: "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", Name: "vm", State: "Running", Notes: "mine, not swdt " + m.UUID,
		Path: filepath.Join(filepath.Dir(m.Folder), "vm2", "hyperv"),
	}
	h.change(t, func(h *hypervtest.Host) { h.VMs = []*hypervtest.VM{&other} })
	if status, err := d.Status(ctx, m); err != nil || status.State != vm.Absent {
		t.Errorf("the VM is %s, %v", status.State, err)
	}
	check(t, d.Kill(ctx, m))
	check(t, d.Delete(ctx, m))
	check(t, d.Create(ctx, m))
	check(t, d.Delete(ctx, m))
	h.change(t, func(h *hypervtest.Host) {
		if diff := cmp.Diff([]*hypervtest.VM{&other}, h.VMs, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAddresses(t *testing.T) {
	h, d := newHost(t)
	m, ctx := machine(t, "m"), t.Context()
	m.Network.Address = "192.168.1.9"
	check(t, d.Create(ctx, m))
	check(t, d.Start(ctx, m))
	h.change(t, func(h *hypervtest.Host) { h.Neighbour = map[string]string{"52-54-00-0A-0B-0C": "172.20.1.5"} })
	h.vm(t, m, func(v *hypervtest.VM) {
		v.Addresses = []string{"172.20.1.5", "127.0.0.1", "::1", "fe80::1%12", "0.0.0.0", "x; calc", "224.0.0.1", "10.1.2.3"}
	})
	got, err := d.Addresses(ctx, m)
	check(t, err)
	want := []vm.Address{
		{IP: netip.MustParseAddr("192.168.1.9"), Source: "configured", Port: 22},
		{IP: netip.MustParseAddr("172.20.1.5"), Source: "neighbour table", Port: 22},
		{IP: netip.MustParseAddr("10.1.2.3"), Source: "integration services", Port: 22},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
}

func TestCheck(t *testing.T) {
	h, d := newHost(t)
	m, ctx := machine(t, "m"), t.Context()
	errorsOf := func() (all []string) {
		for _, p := range d.Check(ctx, m) {
			if p.Severity == "error" {
				all = append(all, p.What)
			}
		}
		return all
	}
	if got := errorsOf(); len(got) > 0 {
		t.Error(got)
	}
	m.Network.Bridge, m.Image.Base = "none", "/image.qcow2"
	want := []string{"there is no virtual switch none", "the image of the VM cannot be used"}
	if diff := cmp.Diff(want, errorsOf()); diff != "" {
		t.Error(diff)
	}
	h.change(t, func(h *hypervtest.Host) { h.Faults = map[string]string{"hosts": "access denied"} })
	if diff := cmp.Diff([]string{"Hyper-V does not answer you"}, errorsOf()); diff != "" {
		t.Error(diff)
	}
	h.change(t, func(h *hypervtest.Host) { h.Modules = nil })
	if diff := cmp.Diff([]string{"Hyper-V or its PowerShell module is not installed"}, errorsOf()); diff != "" {
		t.Error(diff)
	}
}
