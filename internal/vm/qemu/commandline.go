package qemu

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/accel"
	"github.com/swdt-dev/swdt/internal/vm/qemu/firmware"
)

// plan is everything that decides on a VM's command line.
type plan struct {
	vm.Machine
	machineType string // such as pc-q35-7.2
	accelerator string
	firmware    firmware.Firmware
	sockets     sockets
	sandbox     bool // seccomp, on Linux
	paused      bool // the VM executes nothing until QEMU gets QMP's command cont
}

// arguments returns QEMU's command line without the program. The order of the devices and their PCI
// addresses must never change, since the guest would then see other hardware.
func (p plan) arguments() []string {
	f := filesOf(p.Machine)
	args := []string{
		"-name", "guest=" + commas(p.Name), "-uuid", p.UUID,
		"-nodefaults", "-no-user-config", "-display", "none",
		"-pidfile", f.pid(), "-msg", "timestamp=on",
		"-machine", p.machine(), "-accel", p.accelerator, "-cpu", p.cpu(),
		"-smp", fmt.Sprintf("%d,sockets=1,cores=%d,threads=1", p.CPUs, p.CPUs),
		"-m", fmt.Sprintf("size=%dM", p.Memory>>20),
		"-rtc", "base=utc", "-boot", "menu=off,strict=on",
		"-action", "reboot=reset,shutdown=poweroff,panic=pause",
		"-global", "ICH9-LPC.disable_s3=1",
	}
	if p.sandbox {
		args = append(args, "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
	}
	if p.firmware.SMM {
		args = append(args, "-global", "driver=cfi.pflash01,property=secure,value=on")
	}
	for _, group := range [][]string{p.flash(), p.disk(), p.discs(), p.network(), p.devices(), p.control(), p.tpm()} {
		args = append(args, group...)
	}
	if p.paused {
		args = append(args, "-S")
	}
	return args
}

func (p plan) machine() string {
	smm := "off"
	if p.firmware.SMM {
		smm = "on"
	}
	return p.machineType + ",hpet=off,vmport=off,smm=" + smm + ",pflash0=code,pflash1=vars"
}

// cpu returns the CPU model for the accelerator. VMs with any of these models can be saved in live
// snapshots.
func (p plan) cpu() string {
	switch {
	case p.accelerator == accel.TCG:
		return "max"
	case p.accelerator == accel.KVM:
		return "host,migratable=on," + strings.Join(enlightenments(), ",")
	}
	return "host"
}

// enlightenments returns the interfaces of Hyper-V that make Windows fast on KVM. It lists them
// instead of hv_passthrough, which would prevent live snapshots.
func enlightenments() []string {
	return []string{
		"hv_relaxed", "hv_vapic", "hv_spinlocks=0x1fff", "hv_vpindex", "hv_runtime", "hv_time", "hv_synic", "hv_stimer",
		"hv_frequencies", "hv_tlbflush", "hv_ipi", "hv_reset",
	}
}

// node is the value of an option -blockdev, with the names of QEMU's QAPI.
type node map[string]any

// file returns the node of a local file. QEMU's driver file takes every path as a local path, so
// that no path can select a protocol such as json: or nbd:.
func file(path string, more node) node {
	n := node{"driver": "file", "filename": path}
	for key, value := range more {
		n[key] = value
	}
	return n
}

// blockdev returns the option -blockdev for a node.
func blockdev(n node) []string { return []string{"-blockdev", object(n)} }

// object returns a value as JSON with sorted keys, for an option of QEMU.
func object(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // does not happen: maps of strings, numbers and booleans can be written as JSON
	}
	return string(text)
}

func (p plan) flash() []string {
	return append(
		blockdev(node{"node-name": "code", "driver": p.firmware.Code.Format, "read-only": true,
			"file": file(p.firmware.Code.Path, node{"read-only": true})}),
		blockdev(node{"node-name": "vars", "driver": "qcow2", "backing": nil,
			"file": file(filesOf(p.Machine).vars(), nil)})...)
}

// disk returns the options for the disk with its whole chain of images. Each image has a value for
// the key "backing", so that QEMU never takes a backing file from an image's header.
func (p plan) disk() []string {
	n := node{"node-name": "disk0", "driver": "qcow2", "discard": "unmap", "backing": nil,
		"file": file(filesOf(p.Machine).disk(), node{"discard": "unmap"})}
	if p.Image.Base != "" {
		n["backing"] = node{"node-name": "base0", "driver": "qcow2", "read-only": true, "backing": nil,
			"file": file(p.Image.Base, node{"read-only": true})}
	}
	device := device{"driver": "virtio-blk-pci", "id": "disk", "drive": "disk0", "bootindex": 1, "addr": "3"}
	if p.DiskBus == vm.SATA {
		device = map[string]any{"driver": "ide-hd", "id": "disk", "drive": "disk0", "bootindex": 1, "bus": "ide.0"}
	}
	return append(blockdev(n), device.option()...)
}

// discNode begins the names of the nodes of CDs.
const discNode = "cd"

// maxDiscs is the number of CD drives for which q35's SATA controller has room beside the disk.
const maxDiscs = 5

func (p plan) discs() []string {
	var args []string
	for i, path := range p.Discs {
		medium := disc(i, path)
		args = append(args, blockdev(medium)...)
		args = append(args, device{"driver": "ide-cd", "id": discDrive(i), "drive": medium["node-name"], "bootindex": 2 + i,
			"bus": "ide." + strconv.Itoa(1+i)}.option()...)
	}
	return args
}

// disc returns the medium of a CD drive.
func disc(drive int, path string) node {
	return node{"node-name": discNode + strconv.Itoa(drive), "driver": "raw", "read-only": true,
		"file": file(path, node{"read-only": true})}
}

// discDrive returns the name of a CD drive.
func discDrive(drive int) string { return "drive-" + discNode + strconv.Itoa(drive) }

// CommandLine returns the command that Start would run, for a preview. It starts no VM: it runs
// QEMU only to probe the accelerator and to list the types of machines.
func (d *Driver) CommandLine(m vm.Machine) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), previewLimit)
	defer cancel()
	path, err := d.qemu()
	if err != nil {
		return nil, err
	}
	uefi, err := d.firmware(m)
	if err != nil {
		return nil, err
	}
	choice, err := d.accelerator(ctx, m)
	if err != nil {
		return nil, err
	}
	var hardware made
	if readRecord(filesOf(m).made(), &hardware) != nil { // the VM is not made yet
		if hardware.Machine, err = d.machineType(ctx); err != nil {
			return nil, err
		}
	}
	p := plan{
		Machine: m, machineType: hardware.Machine, accelerator: choice.Name, firmware: uefi,
		sockets: sockets{socketFolders(m)[0]}, sandbox: sandboxed(),
	}
	return append([]string{path}, p.arguments()...), nil
}

// previewLimit bounds the programs that a preview runs.
const previewLimit = time.Minute

// machineType returns the versioned name of QEMU's present q35, such as pc-q35-7.2.
func (d *Driver) machineType(ctx context.Context) (string, error) {
	path, err := d.qemu()
	if err != nil {
		return "", err
	}
	out, err := run(ctx, path, "-machine", "help")
	if err != nil {
		return "", err
	}
	return aliasOf(out, "q35"), nil
}

// aliasOf reads "q35   Standard PC (Q35 + ICH9, 2009) (alias of pc-q35-7.2)". If QEMU prints
// something else, aliasOf returns name itself.
func aliasOf(help, name string) string {
	for line := range strings.Lines(help) {
		words := strings.Fields(line)
		if i := slices.Index(words, "(alias"); len(words) > 0 && words[0] == name && i > 0 && i+2 < len(words) {
			alias := strings.TrimSuffix(words[i+2], ")")
			if strings.HasPrefix(alias, "pc-q35-") && !strings.ContainsAny(alias, ",=") {
				return alias
			}
		}
	}
	return name
}

// sandboxed reports whether QEMU gets a seccomp filter, which only Linux has.
func sandboxed() bool { return runtime.GOOS == "linux" }
