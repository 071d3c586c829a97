package v1alpha1

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// maxDomainName bounds the name of a libvirt domain or of a virtual switch, in bytes.
const maxDomainName = 255

// validateLibvirt checks a VM that is a libvirt domain. The domain has its own processors,
// disks and network, so the node file must not set them.
func validateLibvirt(p *problems, field string, m *Machine) {
	if p.required(field+".domain", m.Domain, "write the domain's name as `virsh list --all` lists it") &&
		(hasControl(m.Domain) || len(m.Domain) > maxDomainName || strings.Contains(m.Domain, "/")) {
		p.add(field+".domain", fmt.Sprintf("%.60q is not the name of a libvirt domain", m.Domain),
			"write it as `virsh list --all` lists it")
	}
	if remedy := libvirtRemedy(m.URI); remedy != "" {
		p.add(field+".uri", fmt.Sprintf("%.60q is not a libvirt of your machine", m.URI), remedy)
	}
	for _, set := range []struct {
		name string
		is   bool
	}{
		{"image", m.Image != MachineImage{}}, {"cpus", m.CPUs != 0}, {"memory", m.Memory != 0},
		{"disk", m.Disk != 0}, {"diskBus", m.DiskBus != ""}, {"firmware", m.Firmware != MachineFirmware{}},
		{"accelerator", m.Accelerator != ""}, {"timeZone", m.TimeZone != ""},
		{"network.mode", m.Network.Mode != ""}, {"network.bridge", m.Network.Bridge != ""},
		{"network.tap", m.Network.Tap != ""}, {"network.adapter", m.Network.Adapter != ""},
		{"network.ports", len(m.Network.Ports) > 0}, {"display", m.Display != MachineDisplay{}},
		{"passwordFrom", m.PasswordFrom != nil},
	} {
		if set.is {
			p.add(field+"."+set.name, "is set, but driver libvirt adopts a domain as it is",
				"remove it, and change the domain with `virsh edit` if needed")
		}
	}
	if address := m.Network.Address; address != "auto" && !isMachineAddress(address) {
		p.add(field+".network.address", fmt.Sprintf("%.60q is not an IP address", address),
			"write an IPv4 or IPv6 address, or auto")
	}
}

// isMachineAddress reports whether a text is an IP address without a zone.
func isMachineAddress(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Zone() == ""
}

// libvirtRemedy returns "" if the URI names a libvirt of this machine. For any other URI, it
// returns the remedy.
func libvirtRemedy(uri string) string {
	const local = "write qemu:///system or qemu:///session"
	parsed, err := url.Parse(uri)
	if err != nil || hasControl(uri) || parsed.Opaque != "" || parsed.Fragment != "" {
		return local
	}
	if parsed.Host != "" || parsed.User != nil || strings.Contains(parsed.Scheme, "+") {
		return local + ", and run swdt on the machine that has the domain"
	}
	if parsed.Scheme != "qemu" && parsed.Scheme != "test" {
		return local
	}
	for option := range parsed.Query() {
		if option != "socket" {
			return local + "; the only option is socket"
		}
	}
	if parsed.Scheme == "qemu" && parsed.Path != "/system" && parsed.Path != "/session" {
		return local
	}
	return ""
}

// validateHyperv checks the settings that differ with driver hyperv.
func validateHyperv(p *problems, field string, m *Machine) {
	for _, set := range []struct{ name, value string }{
		{"diskBus", m.DiskBus}, {"network.adapter", m.Network.Adapter}, {"image.drivers", m.Image.Drivers},
	} {
		if set.value != "" {
			p.add(field+"."+set.name, "is set, but Hyper-V has devices of its own, for which Windows has drivers", "remove it")
		}
	}
	if m.Display.VNC != "" {
		p.add(field+".display.vnc", "is set, but Hyper-V shows the screen in a window of its own", "remove it")
	}
	if m.Accelerator != "auto" {
		p.add(field+".accelerator", "is set, but driver hyperv always uses Hyper-V", "remove it")
	}
	n := m.Network
	if n.Mode != "bridge" {
		p.add(field+".network.mode", fmt.Sprintf("is %.60q, but driver hyperv connects a VM to a virtual switch", n.Mode),
			"write mode: bridge, with the switch's name as bridge")
	}
	if n.Tap != "" {
		p.add(field+".network.tap", "is set, but Hyper-V has no tap devices", "remove it")
	}
	if hasControl(n.Bridge) || len(n.Bridge) > maxDomainName {
		p.add(field+".network.bridge", fmt.Sprintf("%.60q is not the name of a virtual switch", n.Bridge),
			"write it as `Get-VMSwitch` lists it")
	}
}
