package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestQuantity(t *testing.T) {
	for text, want := range map[string]Quantity{
		"8Gi": 8 << 30, "512Mi": 512 << 20, "1.5Gi": 3 << 29, "64G": 64e9, "1k": 1000, "1Ti": 1 << 40, "4096": 4096,
		"0": 0,
	} {
		var got Quantity
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "Gi", "8GB", "8gi", "-1", "1e9", "0.1", "8 Gi", "9999999Ti", "1.2.3Gi",
		"0x10", "NaN", "Inf", "+8Gi", "٨Gi"} {
		var got Quantity
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestAQuantityReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Quantity(rapid.Int64Range(0, 1<<50).Draw(t, "bytes"))
		var again Quantity
		if err := again.UnmarshalText([]byte(q.String())); err != nil || again != q {
			t.Fatalf("%s: %d, %v", q, again, err)
		}
	})
}

func TestMachineDefaults(t *testing.T) {
	n := Node{Spec: NodeSpec{Machine: &Machine{Network: MachineNetwork{Ports: []MachinePort{{Name: "rdp"}}}}}}
	SetDefaults(&n)
	once := *n.Spec.Machine
	SetDefaults(&n)
	want := Machine{
		Driver: "qemu", CPUs: 4, Memory: 8 << 30, Disk: 64 << 30, DiskBus: "sata", Accelerator: "auto", TimeZone: "UTC",
		Display: MachineDisplay{VNC: "unix"},
		Network: MachineNetwork{Mode: "user", Address: "auto", Adapter: "e1000e",
			Ports: []MachinePort{{Name: "rdp", Guest: 3389}}},
	}
	if diff := cmp.Diff(want, once); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, *n.Spec.Machine); diff != "" {
		t.Errorf("the second time: %s", diff)
	}
	virtio := Node{Spec: NodeSpec{Machine: &Machine{Image: MachineImage{ISO: "w.iso", Drivers: "v.iso"}}}}
	SetDefaults(&virtio)
	switch m := virtio.Spec.Machine; {
	case m.DiskBus != "virtio":
		t.Errorf("m.DiskBus = %q, want %q", m.DiskBus, "virtio")
	case m.Network.Adapter != "virtio":
		t.Errorf("m.Network.Adapter = %q, want %q", m.Network.Adapter, "virtio")
	case m.Image.Edition != "standard-core":
		t.Errorf("m.Image.Edition = %q, want %q; with drivers: %+v", m.Image.Edition, "standard-core", m)
	}
}

func TestValidateMachine(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Machine)
		want   []string
	}{
		"good": {func(*Machine) {}, nil},
		"a unit": {func(m *Machine) { m.Memory = 8 },
			[]string{"spec.machine.memory: 8 is too little: at least 64Mi are needed"}},
		"too much": {func(m *Machine) { m.Disk = 65 << 40 },
			[]string{"spec.machine.disk: 65Ti is too much: at most 64Ti are possible"}},
		"processors": {func(m *Machine) { m.CPUs = 1000 },
			[]string{"spec.machine.cpus: 1000 is not a number of processors"}},
		"a URL": {func(m *Machine) { m.Image.Disk = "https://h/a.qcow2" },
			[]string{"spec.machine.image.disk: is a URL"}},
		"a line break": {func(m *Machine) { m.Image.Disk = "a\nb" },
			[]string{"spec.machine.image.disk: has a control character"}},
		"disk and iso": {func(m *Machine) { m.Image.Disk, m.Image.ISO = "a", "b" },
			[]string{"spec.machine.image.iso: is set beside disk"}},
		"key, not shown": {func(m *Machine) { m.Image.ISO, m.Image.ProductKey = "a", "SECRET" },
			[]string{"spec.machine.image.productKey: is not a product key"}},
		"QEMU's options in a bridge": {func(m *Machine) {
			m.Network.Mode, m.Network.Bridge = "bridge", "br0,script=/x"
		},
			[]string{`spec.machine.network.bridge: "br0,script=/x" is not the name of a network interface`}},
		"a path as a tap": {func(m *Machine) { m.Network.Mode, m.Network.Tap = "tap", "../t" },
			[]string{`spec.machine.network.tap: "../t" is not the name of a network interface`}},
		"QEMU's options in an address": {func(m *Machine) {
			m.Network.Mode, m.Network.Tap, m.Network.Address = "tap", "t", "fe80::1%a,b"
		},
			[]string{`spec.machine.network.address: "fe80::1%a,b" is not an IP address`}},
		"QEMU's options in a port": {func(m *Machine) { m.Network.Ports = []MachinePort{{Name: "x,y", Guest: 1}} },
			[]string{`spec.machine.network.ports[0].name: "x,y" is not a name`}},
		"a port without a guest": {func(m *Machine) { m.Network.Ports = []MachinePort{{Name: "web"}} },
			[]string{"spec.machine.network.ports[0].guest: is not a port of the VM"}},
		"ports of an own address": {func(m *Machine) {
			m.Network = MachineNetwork{Mode: "tap", Tap: "t", Address: "auto", Adapter: "virtio",
				Ports: []MachinePort{{Name: "rdp", Guest: 3389}}}
		}, []string{"spec.machine.network.ports: is set, but the mode is tap"}},
		"a domain of QEMU's": {func(m *Machine) { m.Domain = "win" },
			[]string{"spec.machine.domain: is set, but the driver is qemu"}},
		"QEMU's options in a display": {func(m *Machine) { m.Display.VNC = "0.0.0.0:1" },
			[]string{`spec.machine.display.vnc: "0.0.0.0:1" is not one of unix, port, none`}},
		"a password that is not named": {func(m *Machine) {
			m.Image.ISO, m.PasswordFrom = "a", &SecretSource{Env: "$hunter2"}
		}, []string{"spec.machine.passwordFrom.env: is not the name of an environment variable"}},
		"a password of a disk image": {func(m *Machine) {
			m.Image.Disk, m.PasswordFrom = "a", &SecretSource{Env: "PASSWORD"}
		}, []string{"spec.machine.passwordFrom: is set, but only a VM that is installed from an ISO gets a password " +
			"from swdt"}},
		"a driver": {func(m *Machine) { m.Driver = "vmware" },
			[]string{`spec.machine.driver: "vmware" is not one of qemu, libvirt, hyperv, simulated`}},
	} {
		t.Run(name, func(t *testing.T) {
			n := Node{APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: "n"},
				Spec: NodeSpec{Machine: &Machine{}}}
			SetDefaults(&n)
			c.change(n.Spec.Machine)
			var got []string
			for _, problem := range Validate(&n) {
				if problem.Remedy == "" {
					t.Errorf("no remedy: %+v", problem)
				}
				got = append(got, problem.Field+": "+problem.What)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyAVMNeedsNoHostname(t *testing.T) {
	n := Node{APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: "n"}, Spec: NodeSpec{Machine: &Machine{}}}
	SetDefaults(&n)
	if problems := Validate(&n); len(problems) > 0 {
		t.Error(problems)
	}
	n.Spec.Credentials.Hostname = "me@h"
	if problems := Validate(&n); len(problems) != 1 {
		t.Error("the hostname of a VM is not checked:", problems)
	}
}
