package vm

// Machine is the part of a VM's record that drivers need. swdt writes it once, when it creates the
// VM; only the forwarded ports of the network may change later.
type Machine struct {
	Version int    `json:"version"` // of the record's form
	Name    string `json:"name"`    // unique among your VMs
	UUID    string `json:"uuid"`    // marks the VM's processes
	Driver  string `json:"driver"`  // qemu, simulated, hyperv, libvirt
	// Folder is the absolute path of the folder that holds everything of this VM. It is not
	// part of the record's file, since that file is in the folder.
	Folder string `json:"-"`

	// Domain is the name of the libvirt domain that an Adopter has adopted as this VM. URI names
	// the libvirt that has the domain.
	Domain string `json:"domain"`
	URI    string `json:"uri"`

	CPUs     int      `json:"cpus"`
	Memory   int64    `json:"memory"` // bytes
	Disk     int64    `json:"disk"`   // bytes that the guest sees
	DiskBus  DiskBus  `json:"diskBus"`
	Firmware Firmware `json:"firmware"`
	Image    Image    `json:"image"`
	Network  Network  `json:"network"`
	// Discs are the files in the VM's CD drives, in the order of the drives: the discs of an
	// installation, the CD for the first start of a VM that is made from a golden image, or the CD
	// with drivers that a node file names beside a disk image.
	Discs []string `json:"discs"`
	// Display selects the VNC server that shows the screen; empty means DisplaySocket.
	Display Display `json:"display"`
	// Accelerator is kvm, hvf, whpx or tcg; empty means the best accelerator that works.
	Accelerator string `json:"accelerator"`
}

// Image selects the content of the disk of a new VM.
type Image struct {
	// Base is the absolute path of the disk image that the VM's own disk is laid over. swdt never
	// writes to this image. If Base is empty, the disk of a new VM is empty.
	Base string `json:"base"`
	// Vars is the absolute path of a file with firmware variables, of which a new VM gets a copy.
	// If Vars is empty, the VM gets the variables of a new machine.
	Vars string `json:"vars"`
	// Key identifies a golden image by everything that went into the image; empty for a disk image
	// that the user provides.
	Key string `json:"key"`
}

// Display is the kind of a VM's VNC server.
type Display string

const (
	DisplaySocket Display = "unix" // a Unix socket of this user
	DisplayPort   Display = "port" // a port of 127.0.0.1, with a password
	NoDisplay     Display = "none"
)

// DiskBus is the controller that the guest sees its disk on.
type DiskBus string

const (
	VirtIO DiskBus = "virtio" // fast; Windows needs a driver
	SATA   DiskBus = "sata"   // Windows has the driver
)

// Firmware selects the features that a VM's firmware has in addition to UEFI.
type Firmware struct {
	SecureBoot bool `json:"secureBoot"`
	TPM        bool `json:"tpm"`
}

// Network is the one network adapter of a VM.
type Network struct {
	Mode    NetworkMode `json:"mode"`
	Adapter Adapter     `json:"adapter"`
	MAC     string      `json:"mac"`    // never changes: HNS binds its networks to the MAC address
	Bridge  string      `json:"bridge"` // the bridge on your machine, in mode bridge
	Tap     string      `json:"tap"`    // the tap device, in modes bridge and tap
	// Address is the guest's own address if it is known before the guest runs; empty in
	// mode user.
	Address string `json:"address"`
	// Isolated reports whether the guest reaches nothing, in mode user. It is false for VMs of earlier versions of swdt,
	// which reach other machines.
	Isolated bool `json:"isolated"`
	// Forwards are the ports of your machine's loopback address that lead to the guest,
	// in mode user.
	Forwards []Forward `json:"forwards"`
}

// Outbound reports whether the guest of a VM in mode user reaches other machines.
func (n Network) Outbound() bool { return n.Mode == UserMode && !n.Isolated }

// NetworkMode is the way in which a VM's network adapter is connected.
type NetworkMode string

const (
	UserMode   NetworkMode = "user"   // no rights needed; only forwarded ports reach the guest
	BridgeMode NetworkMode = "bridge" // swdt makes a tap and puts it on a bridge
	TapMode    NetworkMode = "tap"    // a tap that the user has made
)

// Adapter is the model of network card that the guest sees.
type Adapter string

const (
	VirtIONet Adapter = "virtio" // fast; Windows needs a driver
	E1000E    Adapter = "e1000e" // Windows has the driver
)

// Forward forwards a TCP port of 127.0.0.1 to a port of the guest.
type Forward struct {
	Name      string `json:"name"` // ssh, rdp, or a name that the user chose
	HostPort  int    `json:"hostPort"`
	GuestPort int    `json:"guestPort"`
}
