package libvirt

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/digitalocean/go-libvirt"

	"github.com/swdt-dev/swdt/internal/vm"
)

// maxDescription bounds libvirt's description of a domain, in bytes.
const maxDescription = 4 << 20

// description is the part of libvirt's XML of a domain that swdt reads.
type description struct {
	XMLName xml.Name `xml:"domain"`
	Type    string   `xml:"type,attr"` // kvm, qemu, hvf, test
	Memory  struct {
		Unit  string `xml:"unit,attr"`
		Value int64  `xml:",chardata"`
	} `xml:"memory"`
	CPUs int `xml:"vcpu"`
	OS   struct {
		Firmware string `xml:"firmware,attr"` // efi, bios, or empty
		Loader   struct {
			Type   string `xml:"type,attr"` // pflash: UEFI
			Secure string `xml:"secure,attr"`
		} `xml:"loader"`
	} `xml:"os"`
	Devices struct {
		Disks []struct {
			Device string `xml:"device,attr"` // disk or cdrom; empty means disk
			Driver struct {
				Type string `xml:"type,attr"` // qcow2, raw
			} `xml:"driver"`
			Target struct {
				Dev string `xml:"dev,attr"`
				Bus string `xml:"bus,attr"`
			} `xml:"target"`
			ReadOnly *struct{} `xml:"readonly"`
		} `xml:"disk"`
		Interfaces []struct {
			Type string `xml:"type,attr"` // network, bridge, user, …
			MAC  struct {
				Address string `xml:"address,attr"`
			} `xml:"mac"`
			Source struct {
				Network string `xml:"network,attr"`
				Bridge  string `xml:"bridge,attr"`
				Dev     string `xml:"dev,attr"`
			} `xml:"source"`
			Model struct {
				Type string `xml:"type,attr"`
			} `xml:"model"`
		} `xml:"interface"`
		Graphics []graphics  `xml:"graphics"`
		Serials  []character `xml:"serial"`
		TPMs     []struct{}  `xml:"tpm"`
	} `xml:"devices"`
}

// graphics is a screen that a viewer can connect to.
type graphics struct {
	Type    string `xml:"type,attr"` // vnc, spice, …
	Port    int    `xml:"port,attr"`
	Socket  string `xml:"socket,attr"`
	Listen  string `xml:"listen,attr"`
	Listens []struct {
		Type    string `xml:"type,attr"` // address, socket, none
		Address string `xml:"address,attr"`
		Socket  string `xml:"socket,attr"`
	} `xml:"listen"`
}

// character is a serial port.
type character struct {
	Type    string `xml:"type,attr"` // pty, unix, tcp, file
	Sources []struct {
		Path    string `xml:"path,attr"`
		Mode    string `xml:"mode,attr"`
		Host    string `xml:"host,attr"`
		Service string `xml:"service,attr"`
	} `xml:"source"`
}

// describe returns the description of a domain. If the domain runs, the description shows the
// domain as it runs now.
func (c *client) describe(domain libvirt.Domain) (description, error) {
	text, err := c.DomainGetXMLDesc(domain, 0)
	if err != nil {
		return description{}, fmt.Errorf("read the domain's description: %w", err)
	}
	return parseDescription(text)
}

func parseDescription(text string) (d description, err error) {
	if len(text) > maxDescription {
		return d, fmt.Errorf("read the domain's description: it has more than %d bytes", maxDescription)
	}
	if err := xml.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("read the domain's description: %w", err)
	}
	return d, nil
}

// complete fills a record with the values of the domain.
func (d description) complete(m *vm.Machine) {
	m.CPUs, m.Memory, m.Accelerator = d.CPUs, d.bytes(), d.accelerator()
	m.Firmware = vm.Firmware{SecureBoot: d.OS.Loader.Secure == "yes", TPM: len(d.Devices.TPMs) > 0}
	if i, ok := d.mainDisk(); ok {
		m.DiskBus = vm.DiskBus(d.Devices.Disks[i].Target.Bus)
	}
	if len(d.Devices.Interfaces) == 0 {
		return
	}
	nic := d.Devices.Interfaces[0]
	m.Network.Mode, m.Network.Adapter, m.Network.MAC = vm.NetworkMode(nic.Type), vm.Adapter(nic.Model.Type),
		nic.MAC.Address
	m.Network.Bridge = nic.Source.Network + nic.Source.Bridge
}

// bytes returns the domain's memory in bytes.
func (d description) bytes() int64 {
	units := map[string]int64{
		"b": 1, "bytes": 1, "KB": 1e3, "k": 1 << 10, "KiB": 1 << 10, "": 1 << 10, "MB": 1e6, "M": 1 << 20, "MiB": 1 << 20,
		"GB": 1e9, "G": 1 << 30, "GiB": 1 << 30, "TB": 1e12, "T": 1 << 40, "TiB": 1 << 40,
	}
	return d.Memory.Value * units[d.Memory.Unit]
}

// accelerator returns swdt's name of the accelerator.
func (d description) accelerator() string {
	if d.Type == "qemu" {
		return "tcg"
	}
	return d.Type
}

// mainDisk returns the index of the first disk that is no CD drive. The second result is false if
// there is no such disk.
func (d description) mainDisk() (int, bool) {
	for i, disk := range d.Devices.Disks {
		if disk.Device == "disk" || disk.Device == "" {
			return i, true
		}
	}
	return 0, false
}

// hasAddress reports whether an interface of the domain has this MAC address.
func (d description) hasAddress(mac string) bool {
	for _, nic := range d.Devices.Interfaces {
		if strings.EqualFold(nic.MAC.Address, mac) {
			return true
		}
	}
	return false
}

// diskSize returns the size of the first disk as the guest sees it, in bytes; 0 if libvirt
// does not know it.
func (c *client) diskSize(domain libvirt.Domain, d description) int64 {
	i, ok := d.mainDisk()
	if !ok {
		return 0
	}
	_, capacity, _, err := c.DomainGetBlockInfo(domain, d.Devices.Disks[i].Target.Dev, 0)
	if err != nil || capacity > 1<<60 {
		return 0
	}
	return int64(capacity)
}
