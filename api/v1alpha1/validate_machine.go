package v1alpha1

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of a VM. The minimums only catch mistakes, such as a missing unit.
const (
	minMachineMemory Quantity = 64 << 20
	minMachineDisk   Quantity = 1 << 20
	maxMachineSize   Quantity = 64 << 40
	maxMachineCPUs            = 512
	maxMachinePorts           = 32
)

// interfaceName matches the name of a network interface on Linux. It matches no name with a
// comma, since commas separate options on QEMU's command line.
const interfaceName = `[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}`

func validateMachine(p *problems, field string, m *Machine) {
	if m == nil {
		return
	}
	oneOf(p, field+".driver", m.Driver, MachineDrivers()...)
	if m.Driver == LibvirtDriver {
		validateLibvirt(p, field, m)
		return
	}
	for _, only := range []struct{ name, value string }{{"domain", m.Domain}, {"uri", m.URI}} {
		if only.value != "" {
			p.add(field+"."+only.name, "is set, but the driver is "+m.Driver, "write driver: libvirt, or remove it")
		}
	}
	if m.Driver == HypervDriver {
		validateHyperv(p, field, m)
	} else {
		oneOf(p, field+".diskBus", m.DiskBus, "sata", "virtio")
		oneOf(p, field+".network.adapter", m.Network.Adapter, "e1000e", "virtio")
		oneOf(p, field+".display.vnc", m.Display.VNC, "unix", "port", "none")
	}
	validateMachineImage(p, field+".image", m.Image)
	validateSecretSource(p, field+".passwordFrom", m.PasswordFrom)
	if m.PasswordFrom != nil && m.Image.ISO == "" {
		p.add(field+".passwordFrom", "is set, but only a VM that is installed from an ISO gets a password from swdt",
			"name the ISO as image.iso, or remove it")
	}
	if m.CPUs < 1 || m.CPUs > maxMachineCPUs {
		p.add(field+".cpus", fmt.Sprintf("%d is not a number of processors", m.CPUs),
			fmt.Sprintf("write 1 to %d", maxMachineCPUs))
	}
	validateSize(p, field+".memory", m.Memory, minMachineMemory, "8Gi")
	validateSize(p, field+".disk", m.Disk, minMachineDisk, "64Gi")
	oneOf(p, field+".accelerator", m.Accelerator, "auto", "kvm", "hvf", "whpx", "tcg")
	if !matches(`[A-Za-z0-9][A-Za-z0-9 ()+./_-]{0,63}`, m.TimeZone) {
		p.add(field+".timeZone", fmt.Sprintf("%.60q is not a time zone of Windows", m.TimeZone),
			"write its name as `tzutil /l` lists it, such as UTC")
	}
	validateMachineNetwork(p, field+".network", m.Driver, m.Network)
}

func validateSize(p *problems, field string, size, least Quantity, example string) {
	switch {
	case size < least:
		p.add(field, fmt.Sprintf("%s is too little: at least %s are needed", size, least),
			"write the size with its unit, such as "+example)
	case size > maxMachineSize:
		p.add(field, fmt.Sprintf("%s is too much: at most %s are possible", size, maxMachineSize),
			"write the size with its unit, such as "+example)
	}
}

func oneOf(p *problems, field, value string, words ...string) {
	if !slices.Contains(words, value) {
		p.add(field, fmt.Sprintf("%.60q is not one of %s", value, strings.Join(words, ", ")), "write one of these")
	}
}

func validateMachineImage(p *problems, field string, image MachineImage) {
	for _, path := range []struct{ name, value string }{
		{"disk", image.Disk}, {"iso", image.ISO}, {"drivers", image.Drivers}, {"openSSH", image.OpenSSH},
	} {
		switch {
		case hasControl(path.value):
			p.add(field+"."+path.name, "has a control character", "remove it")
		case strings.Contains(path.value, "://"):
			p.add(field+"."+path.name, "is a URL", "download the file and write its path")
		}
	}
	if image.Disk != "" && image.ISO != "" {
		p.add(field+".iso", "is set beside disk", "keep disk for an installed Windows, or iso to install one")
	}
	for _, only := range []struct{ name, value string }{
		{"sha256", image.SHA256}, {"edition", image.Edition}, {"openSSH", image.OpenSSH},
		{"productKey", image.ProductKey},
	} {
		if only.value != "" && image.ISO == "" {
			p.add(field+"."+only.name, "is set, but there is no iso to install from", "set iso, or remove it")
		}
	}
	if image.SHA256 != "" && !matches(`[0-9A-Fa-f]{64}`, image.SHA256) {
		p.add(field+".sha256", "is not a SHA-256 hash", "write 64 hexadecimal digits, as sha256sum prints them")
	}
	if image.Edition != "" && (hasControl(image.Edition) || len(image.Edition) > 200) {
		p.add(field+".edition", "is not an edition",
			"write standard-core, standard, datacenter-core, datacenter, or the number of an image")
	}
	if image.ProductKey != "" && !matches(`(?i)[A-Z0-9]{5}(-[A-Z0-9]{5}){4}`, image.ProductKey) {
		p.add(field+".productKey", "is not a product key",
			"write five groups of five letters and digits with dashes between them")
	}
}

func validateMachineNetwork(p *problems, field, driver string, n MachineNetwork) {
	oneOf(p, field+".mode", n.Mode, "user", "bridge", "tap")
	for _, device := range []struct{ name, value string }{{"bridge", n.Bridge}, {"tap", n.Tap}} {
		if device.value != "" && driver != HypervDriver && !matches(interfaceName, device.value) {
			p.add(field+"."+device.name, fmt.Sprintf("%.60q is not the name of a network interface", device.value),
				"write it as `ip link` lists it, at most 15 letters, digits, and - _ .")
		}
	}
	switch {
	case n.Mode == "bridge" && n.Bridge == "":
		p.add(field+".bridge", "is missing", "write the bridge's name as `ip link` lists it, such as docker0")
	case n.Mode == "tap" && n.Tap == "":
		p.add(field+".tap", "is missing", "write the tap device's name as `ip link` lists it")
	case n.Mode != "bridge" && n.Bridge != "":
		p.add(field+".bridge", "is set, but the mode is "+n.Mode, "write mode: bridge, or remove it")
	case n.Mode == "user" && n.Tap != "":
		p.add(field+".tap", "is set, but the mode is user", "write mode: bridge or tap, or remove it")
	}
	if n.Outbound && n.Mode != "user" {
		p.add(field+".outbound", "is set, but the mode is "+n.Mode, "remove it: the VM reaches what its network reaches")
	}
	if n.Address != "auto" {
		switch {
		case !isMachineAddress(n.Address):
			p.add(field+".address", fmt.Sprintf("%.60q is not an IP address", n.Address),
				"write an IPv4 or IPv6 address, or auto")
		case n.Mode == "user":
			p.add(field+".address", "is set, but in mode user the VM has no address of its own",
				"write mode: bridge or tap, or remove it")
		}
	}
	validateMachinePorts(p, field, n)
}

func validateMachinePorts(p *problems, field string, n MachineNetwork) {
	if len(n.Ports) > 0 && n.Mode != "user" {
		p.add(field+".ports", "is set, but the mode is "+n.Mode,
			"remove it: all of the VM's ports are at its own address")
	}
	if len(n.Ports) > maxMachinePorts {
		p.add(field+".ports", fmt.Sprintf("has %d ports", len(n.Ports)),
			fmt.Sprintf("keep at most %d", maxMachinePorts))
		return
	}
	names, hosts := newSeen(p), newSeen(p)
	for i, port := range n.Ports {
		item := func(name string) string { return at(field+".ports", i, name) }
		if p.required(item("name"), port.Name, "name the port, such as rdp") {
			if matches(`[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?`, port.Name) {
				names.add(item("name"), port.Name)
			} else {
				p.add(item("name"), fmt.Sprintf("%.60q is not a name", port.Name),
					"use at most 15 lower-case letters, digits, and - between them")
			}
		}
		if port.Guest < 1 || port.Guest > 65535 {
			p.add(item("guest"), "is not a port of the VM", "write a number from 1 to 65535")
		}
		if port.Name == "ssh" && port.Guest != 22 {
			p.add(item("guest"), "is not the port of the VM's SSH server", "write 22, or give the port another name")
		}
		switch {
		case port.Host < 0 || port.Host > 65535:
			p.add(item("host"), fmt.Sprintf("%d is not a port", port.Host),
				"write a number from 1 to 65535, or leave it out")
		case port.Host != 0:
			hosts.add(item("host"), fmt.Sprint(port.Host))
		}
	}
}
