package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machineProblems returns the problems of a node whose VM is m, after the defaults.
func machineProblems(t *testing.T, m Machine) (got []string) {
	t.Helper()
	n := Node{APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: "n"}, Spec: NodeSpec{Machine: &m}}
	SetDefaults(&n)
	for _, problem := range Validate(&n) {
		if problem.Remedy == "" {
			t.Errorf("no remedy: %+v", problem)
		}
		got = append(got, problem.Field+": "+problem.What)
	}
	return got
}

func TestValidateLibvirt(t *testing.T) {
	const adopts = "is set, but driver libvirt adopts a domain as it is"
	for name, c := range map[string]struct {
		m    Machine
		want []string
	}{
		"good":       {Machine{Domain: "win 2022", URI: "qemu:///session?socket=/run/me/sock"}, nil},
		"an address": {Machine{Domain: "w", Network: MachineNetwork{Address: "192.168.122.10"}}, nil},
		"no domain":  {Machine{}, []string{"spec.machine.domain: is missing"}},
		"a path":     {Machine{Domain: "../w"}, []string{`spec.machine.domain: "../w" is not the name of a libvirt domain`}},
		"another machine": {Machine{Domain: "w", URI: "qemu+ssh://host/system"},
			[]string{`spec.machine.uri: "qemu+ssh://host/system" is not a libvirt of your machine`}},
		"a program as transport": {Machine{Domain: "w", URI: "qemu:///system?command=/tmp/x"},
			[]string{`spec.machine.uri: "qemu:///system?command=/tmp/x" is not a libvirt of your machine`}},
		"no QEMU": {Machine{Domain: "w", URI: "xen:///system"},
			[]string{`spec.machine.uri: "xen:///system" is not a libvirt of your machine`}},
		"the domain's own settings": {Machine{Domain: "w", CPUs: 2, Image: MachineImage{Disk: "a"}},
			[]string{"spec.machine.image: " + adopts, "spec.machine.cpus: " + adopts}},
		"a bad address": {Machine{Domain: "w", Network: MachineNetwork{Address: "fe80::1%eth0"}},
			[]string{`spec.machine.network.address: "fe80::1%eth0" is not an IP address`}},
	} {
		t.Run(name, func(t *testing.T) {
			c.m.Driver = LibvirtDriver
			if diff := cmp.Diff(c.want, machineProblems(t, c.m)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateHyperv(t *testing.T) {
	for name, c := range map[string]struct {
		m    Machine
		want []string
	}{
		"good":     {Machine{}, nil},
		"a switch": {Machine{Network: MachineNetwork{Bridge: "vSwitch (größer) 'x'"}}, nil},
		"user": {Machine{Network: MachineNetwork{Mode: "user"}},
			[]string{`spec.machine.network.mode: is "user", but driver hyperv connects a VM to a virtual switch`}},
		"a bus": {Machine{DiskBus: "virtio"},
			[]string{"spec.machine.diskBus: is set, but Hyper-V has devices of its own, for which Windows has drivers"}},
		"a line break": {Machine{Network: MachineNetwork{Bridge: "a\nb"}},
			[]string{`spec.machine.network.bridge: "a\nb" is not the name of a virtual switch`}},
		"kvm": {Machine{Accelerator: "kvm"},
			[]string{"spec.machine.accelerator: is set, but driver hyperv always uses Hyper-V"}},
		"a display": {Machine{Display: MachineDisplay{VNC: "unix"}},
			[]string{"spec.machine.display.vnc: is set, but Hyper-V shows the screen in a window of its own"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.m.Driver = HypervDriver
			if diff := cmp.Diff(c.want, machineProblems(t, c.m)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
