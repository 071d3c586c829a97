package vm

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
)

// sshForward is the name of the forward to the guest's SSH server.
const sshForward = "ssh"

// NoMachineError reports a node whose file has no spec.machine.
type NoMachineError struct{ Node string }

func (e *NoMachineError) Error() string {
	return fmt.Sprintf("node %s is no VM of swdt's: its node file has no spec.machine; `swdt config init --full` shows how "+
		"to write one", e.Node)
}

// planned turns spec.machine into the record of a VM that does not exist yet. It only chooses
// identifiers and ports, and makes nothing. The error is a *config.Error if the node file does not
// fit your machine, for example because it names a file that is missing.
func (s *Machines) planned(document config.Document) (Record, error) {
	name, spec := document.Node.Metadata.Name, document.Node.Spec.Machine
	if spec == nil {
		return Record{}, &NoMachineError{name}
	}
	if err := CheckName(name); err != nil {
		return Record{}, err
	}
	others, err := s.store.All()
	if err != nil {
		return Record{}, err
	}
	r := Record{Created: time.Now().UTC().Truncate(time.Second), FixedPorts: []string{}}
	r.Machine = NewMachine(document, s.store.folder(name))
	for slices.ContainsFunc(others, func(f Found) bool { return f.Record.Network.MAC == r.Network.MAC }) {
		r.Network.MAC = newMAC()
	}
	if err := r.planImage(document, spec.Image); err != nil {
		return r, err
	}
	return r, r.planForwards(spec.Network, others)
}

// NewMachine returns the VM that a node's spec.machine describes, with new identifiers. The VM has
// neither an image nor discs nor forwarded ports.
func NewMachine(document config.Document, folder string) Machine {
	spec := document.Node.Spec.Machine
	return Machine{
		Version: recordVersion, Name: document.Node.Metadata.Name, UUID: newUUID(), Driver: spec.Driver, Folder: folder,
		CPUs: spec.CPUs, Memory: int64(spec.Memory), Disk: int64(spec.Disk), DiskBus: DiskBus(spec.DiskBus),
		Firmware: Firmware{SecureBoot: spec.Firmware.SecureBoot, TPM: spec.Firmware.TPM},
		Network: Network{
			Mode: NetworkMode(spec.Network.Mode), Adapter: Adapter(spec.Network.Adapter), MAC: newMAC(),
			Bridge: spec.Network.Bridge, Tap: WantedNetwork(document).Tap, Address: orAuto(spec.Network.Address),
			Isolated: spec.Network.Mode == string(UserMode) && !spec.Network.Outbound,
			Forwards: []Forward{},
		},
		Discs: []string{}, Display: Display(spec.Display.VNC), Accelerator: orAuto(spec.Accelerator),
		Domain: spec.Domain, URI: spec.URI,
	}
}

// orAuto returns a setting, or "" for auto.
func orAuto(setting string) string {
	if setting == "auto" {
		return ""
	}
	return setting
}

// planImage checks that this user can read the files in spec.machine.image, and sets the record's
// base image and discs. The error is a *config.Error with every problem.
func (r *Record) planImage(document config.Document, image v1alpha1.MachineImage) error {
	var problems []config.Problem
	find := func(field, path string) string {
		if path == "" {
			return ""
		}
		found, err := regularFile(document.Resolve(path))
		if err != nil {
			problems = append(problems, document.Problem("spec.machine.image."+field, err.Error(),
				"write the path of a file that you can read"))
		}
		return found
	}
	r.Image.Base = find("disk", image.Disk)
	for field, path := range map[string]string{"iso": image.ISO, "openSSH": image.OpenSSH} {
		find(field, path) // the path is only checked: the golden image is made from these files
	}
	if drivers := find("drivers", image.Drivers); drivers != "" && r.Image.Base != "" {
		r.Discs = append(r.Discs, drivers)
	}
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

// regularFile returns the absolute path of a file that can be read.
func regularFile(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	file, _, err := localfile.OpenRegular(absolute)
	if err != nil {
		return "", err
	}
	return absolute, file.Close()
}

// planForwards chooses the ports of your machine that lead to the guest, in mode user.
func (r *Record) planForwards(network v1alpha1.MachineNetwork, others []Found) error {
	if r.Network.Mode != UserMode {
		return nil
	}
	ports := slices.Clone(network.Ports)
	if !slices.ContainsFunc(ports, func(p v1alpha1.MachinePort) bool { return p.Name == sshForward }) {
		ports = append([]v1alpha1.MachinePort{{Name: sshForward, Guest: v1alpha1.DefaultPort}}, ports...)
	}
	for _, port := range ports {
		r.Network.Forwards = append(r.Network.Forwards, Forward{Name: port.Name, HostPort: port.Host, GuestPort: port.Guest})
		if port.Host != 0 {
			r.FixedPorts = append(r.FixedPorts, port.Name)
		}
	}
	return r.choosePorts(portsOf(others), func(f Forward) bool { return f.HostPort == 0 })
}

// portsOf returns the ports of your machine that the records name.
func portsOf(all []Found) map[int]bool {
	ports := map[int]bool{}
	for _, found := range all {
		for _, forward := range found.Record.Network.Forwards {
			ports[forward.HostPort] = true
		}
	}
	return ports
}

// choosePorts gives a new port to each forward that the given function selects. It adds the new
// ports to the set of taken ports.
func (r *Record) choosePorts(taken map[int]bool, again func(Forward) bool) error {
	for i, forward := range r.Network.Forwards {
		if !again(forward) {
			continue
		}
		port, err := freePort(taken)
		if err != nil {
			return fmt.Errorf("choose the port of 127.0.0.1 that leads to the VM's port %d: %w", forward.GuestPort, err)
		}
		taken[port] = true
		r.Network.Forwards[i].HostPort = port
	}
	return nil
}

// freePortTries bounds how many free ports freePort asks for until it gets a port that no other VM
// has.
const freePortTries = 100

// freePort returns a port of 127.0.0.1 that is free now and that is not in the set of taken ports.
func freePort(taken map[int]bool) (int, error) {
	for range freePortTries {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			return 0, err
		}
		if !taken[port] {
			return port, nil
		}
	}
	return 0, fmt.Errorf("the last %d free ports belong to other VMs; delete some of them", freePortTries)
}

// isFree reports whether a process can listen on a port of 127.0.0.1 now.
func isFree(port int) bool {
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	return err == nil && listener.Close() == nil
}

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newMAC returns a random MAC address of QEMU's range.
func newMAC() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", b[0], b[1], b[2])
}

// differences returns a phrase for each difference between a VM and a new plan for it.
func differences(made, plan Record) (all []string) {
	compare := func(what, is, wanted string) {
		if is != wanted {
			all = append(all, fmt.Sprintf("%s: %s, and the node file says %s", what, orNone(is), orNone(wanted)))
		}
	}
	compare("driver", made.Driver, plan.Driver)
	compare("domain", made.Domain, plan.Domain)
	compare("libvirt", made.URI, plan.URI)
	compare("processors", fmt.Sprint(made.CPUs), fmt.Sprint(plan.CPUs))
	compare("memory", size(made.Memory), size(plan.Memory))
	compare("disk", size(made.Disk), size(plan.Disk))
	compare("disk bus", string(made.DiskBus), string(plan.DiskBus))
	compare("image", made.Image.String(), plan.Image.String())
	compare("firmware", made.Firmware.String(), plan.Firmware.String())
	if plan.Network.Address == "" { // auto
		plan.Network.Address = made.Network.Address
	}
	compare("network", made.Network.String(), plan.Network.String())
	compare("outbound", strconv.FormatBool(made.Network.Outbound()), strconv.FormatBool(plan.Network.Outbound()))
	compare("display", cmp.Or(string(made.Display), string(DisplaySocket)),
		cmp.Or(string(plan.Display), string(DisplaySocket)))
	compare("accelerator", made.Accelerator, plan.Accelerator)
	return all
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func size(bytes int64) string { return v1alpha1.Quantity(bytes).String() }

// String returns the key of a golden image, or else the path of the disk image.
func (i Image) String() string {
	if i.Key != "" {
		return "golden image " + i.Key
	}
	return i.Base
}

// String returns the firmware in words, such as "UEFI, secure boot, TPM".
func (f Firmware) String() string {
	words := []string{"UEFI"}
	if f.SecureBoot {
		words = append(words, "secure boot")
	}
	if f.TPM {
		words = append(words, "TPM")
	}
	return strings.Join(words, ", ")
}

// String returns the network in words, without forwarded ports, such as "bridge br0, e1000e".
func (n Network) String() string {
	var words []string
	for _, word := range []string{string(n.Mode), n.Bridge, n.Tap, n.Address} {
		if word != "" {
			words = append(words, word)
		}
	}
	text := strings.Join(words, " ")
	if n.Adapter == "" {
		return text
	}
	return strings.TrimPrefix(text+", "+string(n.Adapter), ", ")
}
