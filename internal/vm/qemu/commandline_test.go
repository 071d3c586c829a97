package qemu

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/firmware"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// example returns the plan of an ordinary VM.
func example() plan {
	m := vm.Machine{
		Name: "win-1", UUID: "11111111-2222-3333-4444-555555555555", Folder: "/vms/win-1",
		CPUs: 4, Memory: 8 << 30, Disk: 64 << 30, DiskBus: vm.VirtIO, Image: vm.Image{Base: "/images/golden.qcow2"},
		Network: vm.Network{
			Mode: vm.UserMode, Isolated: true, Adapter: vm.VirtIONet, MAC: "52:54:00:12:34:56",
			Forwards: []vm.Forward{
				{Name: "ssh", HostPort: 40022, GuestPort: 22}, {Name: "rdp", HostPort: 33389, GuestPort: 3389},
			},
		},
	}
	return plan{
		Machine: m, machineType: "pc-q35-7.2", accelerator: "kvm", sandbox: true, sockets: sockets{"/vms/win-1/run"},
		firmware: firmware.Firmware{Code: firmware.Image{Path: "/OVMF_CODE.fd", Format: "raw"}},
	}
}

func TestCommandLines(t *testing.T) {
	for name, change := range map[string]func(*plan){
		"kvm": func(*plan) {},
		"tcg": func(p *plan) { p.accelerator = "tcg" },
		"hvf": func(p *plan) { p.accelerator, p.sandbox = "hvf", false },
		"installation": func(p *plan) {
			p.DiskBus, p.Network.Adapter, p.Image.Base = vm.SATA, vm.E1000E, ""
			p.Discs = []string{"/iso/windows.iso", "/vms/win-1/config.iso"}
		},
		"secure-boot-tpm": func(p *plan) {
			p.Firmware = vm.Firmware{SecureBoot: true, TPM: true}
			p.firmware.SMM, p.firmware.Code.Path = true, "/OVMF_CODE.ms.fd"
		},
		"screen-on-a-port": func(p *plan) { p.Display = vm.DisplayPort },
		"no-screen":        func(p *plan) { p.Display = vm.NoDisplay },
		"tap": func(p *plan) {
			p.Network = vm.Network{Mode: vm.TapMode, Adapter: vm.VirtIONet, MAC: "52:54:00:12:34:56", Tap: "swdt0"}
		},
		"outbound": func(p *plan) { p.Network.Isolated = false },
		"odd-names": func(p *plan) {
			p.Name, p.Folder = `Größe 8, a=b "c"`, `/vms/Größe 8, a=b "c"`
			p.Image.Base, p.sockets.folder, p.paused = `/images/json:{"driver":"nbd"}`, "/run/swdt/0123456789abcdef", true
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := example()
			change(&p)
			got := strings.Join(p.arguments(), "\n") + "\n"
			path := filepath.Join("testdata", name+".args")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(expected), got); diff != "" {
				t.Errorf("(-expected +got):\n%s", diff)
			}
		})
	}
}

// Other users of your network reach no port of the guest, and none of QEMU.
func TestOnlyTheLoopbackAddressListens(t *testing.T) {
	for _, argument := range example().arguments() {
		if strings.Contains(argument, "hostfwd") && strings.Count(argument, "tcp:127.0.0.1:") != 2 {
			t.Errorf("argument %s forwards a port of another address", argument)
		}
		if strings.Contains(argument, "0.0.0.0") {
			t.Errorf("argument %s has the address of all interfaces", argument)
		}
		if strings.HasPrefix(argument, "tcp:") || strings.HasPrefix(argument, ":") {
			t.Errorf("argument %s listens", argument)
		}
	}
	command := example().outboundCommand("pasta", "passt")
	for i, argument := range command {
		if argument == "-t" && !strings.HasPrefix(command[i+1], "127.0.0.1/") {
			t.Errorf("%s %s forwards a port of another address", argument, command[i+1])
		}
	}
}

// QEMU takes neither a format nor a backing file from the header of an image.
func TestEveryImageHasItsFormatAndChain(t *testing.T) {
	p := example()
	p.Discs = []string{"/iso/windows.iso"}
	arguments := p.arguments()
	for i, argument := range arguments {
		switch {
		case argument == "-drive" || argument == "-hda" || argument == "-cdrom" || argument == "-bios":
			t.Errorf("%s lets QEMU guess", argument)
		case argument == "-blockdev" && strings.Contains(arguments[i+1], `"driver":"qcow2"`) &&
			strings.Count(arguments[i+1], `"driver":"qcow2"`) != strings.Count(arguments[i+1], `"backing":`):
			t.Errorf("the chain is left to the header: %s", arguments[i+1])
		}
	}
	if n := len(slices.DeleteFunc(arguments, func(a string) bool { return a != "-blockdev" })); n != 4 {
		t.Errorf("%d block devices", n)
	}
}

func TestVersionsAndMachines(t *testing.T) {
	for text, expected := range map[string]qmp.Version{
		"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright": {Major: 7, Minor: 2, Micro: 22},
		"QEMU emulator version 10.0.0":                                              {Major: 10},
		"hello":                                                                     {}, "": {}, "version x": {},
	} {
		got, err := parseVersion(text)
		if got != expected && err == nil || (err == nil) != (expected.Major > 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	const help = "Supported machines are:\nmicrovm   microvm (i386)\npc  Standard PC (alias of pc-i440fx-7.2)\n" +
		"q35                  Standard PC (Q35 + ICH9, 2009) (alias of pc-q35-7.2)\npc-q35-7.1  Standard PC\n"
	for text, expected := range map[string]string{
		help: "pc-q35-7.2", "": "q35", "q35 (alias of": "q35",
		"q35 x (alias of pc-q35-1,accel=x)": "q35", "q35 x (alias of none)": "q35",
	} {
		if got := aliasOf(text, "q35"); got != expected {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestNeighbours(t *testing.T) {
	const table = `IP address       HW type     Flags       HW address            Mask     Device
172.18.255.10    0x1         0x2         52:54:00:12:34:56     *        br-1
172.18.255.11    0x1         0x0         52:54:00:12:34:56     *        br-1
127.0.0.1        0x1         0x2         52:54:00:12:34:56     *        br-1
172.18.0.2       0x1         0x2         02:42:ac:12:00:02     *        br-1
nonsense
`
	got := parseNeighbours(strings.NewReader(table), "52:54:00:12:34:56")
	if len(got) != 1 || got[0].String() != "172.18.255.10" {
		t.Errorf("got %v", got)
	}
}

func TestKeys(t *testing.T) {
	got, err := parseKeys("ctrl-alt-delete")
	if diff := cmp.Diff([]key{{"qcode", "ctrl"}, {"qcode", "alt"}, {"qcode", "delete"}}, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	for _, bad := range []string{"", "-", "a-", "A", "ret\n", "ä", "a-b-c-d-e-f-g-h-i", strings.Repeat("a", 33)} {
		if got, err := parseKeys(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestMemory(t *testing.T) {
	if got, ok := parseMemory("MemTotal: 1 kB\nMemAvailable:   2048 kB\n"); !ok || got != 2<<20 {
		t.Errorf("%d, %t", got, ok)
	}
	for _, bad := range []string{"", "MemAvailable: x kB", "MemAvailable: -1 kB", "MemAvailable: 99999999999999999 kB"} {
		if got, ok := parseMemory(bad); ok {
			t.Errorf("%q: %d", bad, got)
		}
	}
}

// A record of a run names a folder that is removed: only one of makeSockets may be.
func TestOnlyFoldersOfSocketsAreRemoved(t *testing.T) {
	home := t.TempDir()
	for name, expected := range map[string]bool{
		"swdt/0123456789abcdef": true, "swdt-0/0123456789abcdef": true,
		"other/0123456789abcdef": false, "swdt/documents": false, "swdt/0123456789abcdeg": false, ".": false,
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if outside(path) != expected {
			t.Errorf("%s: %t", name, !expected)
		}
	}
	for _, path := range []string{"", "/", "swdt/0123456789abcdef"} {
		if outside(path) {
			t.Errorf("%q", path)
		}
	}
}
