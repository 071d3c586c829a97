package qemu

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/vm"
)

// device is the value of an option -device, with the names of QEMU's properties.
type device map[string]any

// option returns the option -device for a device. A device with an address is on the root bus,
// where it keeps its slot.
func (d device) option() []string {
	if d["addr"] != nil {
		d["bus"] = "pcie.0"
	}
	return []string{"-device", object(d)}
}

func (p plan) network() []string {
	driver := "virtio-net-pci"
	if p.Network.Adapter == vm.E1000E {
		driver = "e1000e"
	}
	card := device{"driver": driver, "id": "nic", "netdev": "net0", "mac": p.Network.MAC, "romfile": "", "addr": "2"}
	return append([]string{"-netdev", object(p.netdev())}, card.option()...)
}

// netdev returns the backend of the network adapter: a tap, passt, or QEMU's user network, which lets the guest reach
// nothing. Forwarded ports are bound to the loopback address only, since the guest's SSH server and remote desktop are
// for this machine.
func (p plan) netdev() map[string]any {
	switch {
	case p.Network.Mode != vm.UserMode:
		return map[string]any{"type": "tap", "id": "net0", "ifname": p.Network.Tap, "script": "no", "downscript": "no"}
	case p.Network.Outbound():
		address := map[string]any{"type": "unix", "path": p.sockets.network()}
		return map[string]any{"type": "stream", "id": "net0", "server": false, "addr": address}
	}
	forwards := []map[string]string{}
	for _, f := range p.Network.Forwards {
		forwards = append(forwards, map[string]string{"str": fmt.Sprintf("tcp:127.0.0.1:%d-:%d", f.HostPort, f.GuestPort)})
	}
	return map[string]any{"type": "user", "id": "net0", "hostfwd": forwards, "restrict": true}
}

// devices returns the devices that all VMs have.
func (p plan) devices() []string {
	var args []string
	for _, d := range []device{
		{"driver": "VGA", "id": "video", "addr": "1"},
		{"driver": "virtio-serial-pci", "id": "channels", "addr": "4"},
		{"driver": "virtserialport", "bus": "channels.0", "chardev": "agent", "name": "org.qemu.guest_agent.0"},
		{"driver": "virtio-rng-pci", "id": "random", "addr": "5"},
		{"driver": "qemu-xhci", "id": "usb", "addr": "6"},
		{"driver": "usb-tablet", "bus": "usb.0"},
		{"driver": "isa-serial", "chardev": "serial"},
	} {
		args = append(args, d.option()...)
	}
	return args
}

// control returns the options for the VNC server, for the sockets, and for the log of the serial
// port. QEMU writes this log to its standard output; the function spawn connects that output to a
// log with a limit.
func (p plan) control() []string {
	args := p.screen()
	for _, s := range []struct{ id, path, more string }{
		{"control", p.sockets.control(), ""},
		{"look", p.sockets.look(), ""},
		{"agent", p.sockets.agent(), ""},
		{"serial", p.sockets.serial(), ",logappend=on,logfile=/dev/stdout"},
	} {
		args = append(args, "-chardev", "socket,id="+s.id+",server=on,wait=off,path="+commas(s.path)+s.more)
	}
	return append(args, "-mon", "chardev=control,mode=control", "-mon", "chardev=look,mode=control")
}

// vncDisplays is how many ports of 127.0.0.1 QEMU tries for its VNC server, from 5900 on.
const vncDisplays = 100

// screen returns the option for the VNC server. All users of your machine can reach a VNC server on
// a port, so QEMU refuses all viewers there until QMP has set a password. This password is in no
// command line.
func (p plan) screen() []string {
	switch p.Display {
	case vm.NoDisplay:
		return nil
	case vm.DisplayPort:
		return []string{"-vnc", fmt.Sprintf("127.0.0.1:0,to=%d,password=on", vncDisplays-1)}
	}
	return []string{"-vnc", "unix:" + commas(p.sockets.vnc())}
}

func (p plan) tpm() []string {
	if !p.Firmware.TPM {
		return nil
	}
	return append([]string{
		"-chardev", "socket,id=tpm,path=" + commas(p.sockets.tpm()), "-tpmdev", "emulator,id=tpm0,chardev=tpm",
	}, device{"driver": "tpm-crb", "tpmdev": "tpm0"}.option()...)
}
