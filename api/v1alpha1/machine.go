package v1alpha1

// The defaults of a VM: enough for kubelet, a pod network and a pod of servercore.
const (
	DefaultMachineDriver          = "qemu"
	DefaultMachineURI             = "qemu:///system"
	DefaultMachineSwitch          = "Default Switch" // of Windows 10 and 11
	DefaultMachineCPUs            = 4
	DefaultMachineMemory Quantity = 8 << 30
	DefaultMachineDisk   Quantity = 64 << 30
)

// The names of the VM drivers other than QEMU.
const (
	// LibvirtDriver adopts a domain that exists, so the node file must not set how to make a VM.
	LibvirtDriver = "libvirt"
	// HypervDriver makes VMs with Hyper-V, on Windows.
	HypervDriver = "hyperv"
	// simulatedDriver is for swdt's own tests: no program runs for its VMs.
	simulatedDriver = "simulated"
)

// MachineDrivers returns the names of all VM drivers.
func MachineDrivers() []string {
	return []string{DefaultMachineDriver, LibvirtDriver, HypervDriver, simulatedDriver}
}

// Machine is a virtual machine that swdt makes on your machine for this node
// (`swdt vm`). Unset: the node is a machine that swdt does not own.
type Machine struct {
	// Driver runs the VM: qemu, hyperv on Windows, or libvirt, which adopts a domain
	// that exists. Default qemu.
	Driver string `yaml:"driver,omitempty"`
	// Domain is the name of the libvirt domain to adopt, with driver libvirt. swdt
	// starts, stops and saves the domain, and never makes, changes or deletes it. With
	// driver libvirt, uri and network.address are the only other settings.
	Domain string `yaml:"domain,omitempty"`
	// URI of the libvirt of your machine, with driver libvirt: qemu:///system
	// (default) or qemu:///session.
	URI string `yaml:"uri,omitempty"`
	// Image is the source of the VM's disk. Unset: the disk is empty.
	Image MachineImage `yaml:"image,omitempty"`
	// CPUs is the number of virtual processors. Default 4.
	CPUs int `yaml:"cpus,omitempty"`
	// Memory of the VM, such as 4Gi. Default 8Gi.
	Memory Quantity `yaml:"memory,omitempty"`
	// Disk is the size of the VM's disk as the guest sees it, such as 100Gi. The
	// file on your machine grows as the guest writes. Default 64Gi.
	Disk Quantity `yaml:"disk,omitempty"`
	// DiskBus is the controller of the disk: sata, for which Windows has a driver,
	// or virtio, which is faster. Windows in an existing image must have been
	// installed with the same controller. Default: virtio if image.drivers is set,
	// else sata.
	DiskBus  string          `yaml:"diskBus,omitempty"`
	Firmware MachineFirmware `yaml:"firmware,omitempty"`
	Network  MachineNetwork  `yaml:"network,omitempty"`
	// Accelerator is kvm, hvf, whpx, or tcg, which emulates and is about ten times
	// slower. Default auto: the fastest that works on your machine.
	Accelerator string `yaml:"accelerator,omitempty"`
	// TimeZone is Windows' name of the time zone that an installation from an ISO
	// sets, such as W. Europe Standard Time. Default UTC.
	TimeZone string `yaml:"timeZone,omitempty"`
	// PasswordFrom is the source of the Administrator's password of a VM that is
	// installed from an ISO. Default: swdt generates a password, and `swdt vm status`
	// prints the path of the password's file. If swdt should also log in with this
	// password, set credentials.passwordFrom to the same source.
	PasswordFrom *SecretSource `yaml:"passwordFrom,omitempty"`
	// Display selects how a viewer reaches the VM's screen.
	Display MachineDisplay `yaml:"display,omitempty"`
}

// MachineDisplay selects how a viewer reaches the VM's screen.
type MachineDisplay struct {
	// VNC is unix (default), a Unix socket that only you can open; port, a port of
	// 127.0.0.1 with a password, for viewers that take no socket; or none. `swdt
	// vm console` prints the socket or the port.
	VNC string `yaml:"vnc,omitempty"`
}

// MachineImage is the source of a new VM's disk: an existing disk image, or a
// Windows ISO to install. Paths may begin with ~ and contain $VARIABLES; a relative
// path is relative to the node file's folder.
type MachineImage struct {
	// Disk is the path of a qcow2 image with an installed Windows. swdt only reads
	// the image: the VM writes to a separate file.
	Disk string `yaml:"disk,omitempty"`
	// ISO is the path of Windows' installation medium. swdt installs Windows from the ISO
	// once, into a golden image, and never changes the ISO.
	ISO string `yaml:"iso,omitempty"`
	// SHA256 of the ISO, 64 hexadecimal digits. If the ISO has another hash, swdt reports
	// an error.
	SHA256 string `yaml:"sha256,omitempty"`
	// Drivers is the path of virtio-win's ISO. swdt installs the drivers and the guest
	// agent of that ISO together with Windows.
	Drivers string `yaml:"drivers,omitempty"`
	// Edition to install: standard-core, standard, datacenter-core, datacenter, or the
	// number or name of an image on the ISO. Default standard-core.
	Edition string `yaml:"edition,omitempty"`
	// OpenSSH is the path of Win32-OpenSSH's MSI or zip, for Windows before Server 2025.
	// Unset: the VM downloads Microsoft's OpenSSH from Windows Update. Server 2025
	// contains OpenSSH.
	OpenSSH string `yaml:"openSSH,omitempty"`
	// ProductKey of Windows. Leave it out for evaluation media.
	ProductKey string `yaml:"productKey,omitempty"`
}

// MachineFirmware has the VM's firmware features beyond UEFI.
type MachineFirmware struct {
	// SecureBoot turns secure boot on, with Microsoft's keys. Windows 11 needs it.
	SecureBoot bool `yaml:"secureBoot,omitempty"`
	// TPM gives the VM a TPM 2.0. Windows 11 needs it.
	TPM bool `yaml:"tpm,omitempty"`
}

// MachineNetwork is the VM's one network adapter.
type MachineNetwork struct {
	// Mode is user (default): it needs no special rights, only forwarded ports
	// lead to the VM, and the VM reaches nothing unless outbound is set; bridge: swdt connects the VM to a bridge of your machine; or
	// tap: the VM uses a tap device that exists. If other machines must reach the
	// node's pods, use bridge or tap. Driver hyperv has only bridge.
	Mode string `yaml:"mode,omitempty"`
	// Bridge is the bridge's name on your machine, in mode bridge; with driver hyperv
	// the name of a virtual switch. Default with hyperv: Default Switch.
	Bridge string `yaml:"bridge,omitempty"`
	// Tap is the tap device's name on your machine, in modes bridge and tap. Default
	// in mode bridge: swdt makes a device.
	Tap string `yaml:"tap,omitempty"`
	// Address is the VM's own address, in modes bridge and tap. Default auto:
	// swdt asks the guest and the network for it.
	Address string `yaml:"address,omitempty"`
	// Adapter is the model of the network card: e1000e, for which Windows has a
	// driver, or virtio, which is faster. Default: virtio if image.drivers is
	// set, else e1000e.
	Adapter string `yaml:"adapter,omitempty"`
	// Outbound lets the VM reach other machines in mode user, but no service on your
	// machine's 127.0.0.1; driver qemu needs passt for it, which only Linux has.
	// Default: the VM reaches nothing. A node that joins a cluster or downloads
	// packages needs it.
	Outbound bool `yaml:"outbound,omitempty"`
	// Ports of your machine's 127.0.0.1 that lead to the VM, in mode user. swdt
	// always adds a port for SSH.
	Ports []MachinePort `yaml:"ports,omitempty"`
}

// MachinePort leads a port of 127.0.0.1 to a port of the VM.
type MachinePort struct {
	// Name of the port, such as rdp.
	Name string `yaml:"name"`
	// Guest is the VM's port. Default by name: ssh 22, rdp 3389, winrm 5985, kubelet
	// 10250.
	Guest int `yaml:"guest,omitempty"`
	// Host is the port of 127.0.0.1. Default: a free port, which swdt chooses.
	Host int `yaml:"host,omitempty"`
}

// guestPorts returns the VM's default ports. The keys are the names of the services.
func guestPorts() map[string]int {
	return map[string]int{"ssh": 22, "rdp": 3389, "winrm": 5985, "kubelet": 10250}
}

// defaultMachine fills in the defaults; m may be nil.
func defaultMachine(m *Machine) {
	if m == nil {
		return
	}
	orElse(&m.Driver, DefaultMachineDriver)
	orElse(&m.Network.Address, "auto")
	if m.Driver == LibvirtDriver {
		orElse(&m.URI, DefaultMachineURI)
		return // the libvirt domain defines all other settings
	}
	if m.CPUs == 0 {
		m.CPUs = DefaultMachineCPUs
	}
	if m.Memory == 0 {
		m.Memory = DefaultMachineMemory
	}
	if m.Disk == 0 {
		m.Disk = DefaultMachineDisk
	}
	if m.Driver == HypervDriver {
		defaultHyperv(m)
	}
	bus, adapter := "sata", "e1000e"
	if m.Image.Drivers != "" {
		bus, adapter = "virtio", "virtio"
	}
	if m.Driver != HypervDriver { // Hyper-V has its own disk and network devices
		orElse(&m.DiskBus, bus)
		orElse(&m.Network.Adapter, adapter)
	}
	orElse(&m.Network.Mode, "user")
	orElse(&m.Accelerator, "auto")
	orElse(&m.TimeZone, "UTC")
	if m.Driver != HypervDriver { // Hyper-V has its own viewer
		orElse(&m.Display.VNC, "unix")
	}
	if m.Image.ISO != "" {
		orElse(&m.Image.Edition, "standard-core")
	}
	for i := range m.Network.Ports {
		port := &m.Network.Ports[i]
		if port.Guest == 0 {
			port.Guest = guestPorts()[port.Name]
		}
	}
}

// defaultHyperv fills in the defaults that differ with driver hyperv.
func defaultHyperv(m *Machine) {
	orElse(&m.Network.Mode, "bridge")
	if m.Network.Mode == "bridge" {
		orElse(&m.Network.Bridge, DefaultMachineSwitch)
	}
}
