// Package hyperv is the driver that runs VMs with Hyper-V, on Windows. It drives the PowerShell
// module Hyper-V through one script, hyperv.ps1: a verb and its arguments go in as JSON, the result comes out as JSON.
//
// A VM is of generation 2. Its folder has, besides the record of package vm:
//
//	hyperv.json   Hyper-V's ID of the VM, when swdt started it, which snapshots have memory
//	hyperv/       the disk, a differencing VHDX over the image, and Hyper-V's own files
//
// Hyper-V chooses the ID when it makes the VM. Until the ID is in hyperv.json, the driver finds the
// VM by its folder or by its notes, which have the record's UUID. So Delete also finds the VM of an
// interrupted Create.
//
// The driver has not run on a real Hyper-V yet: in tests, package hypervtest stands for Hyper-V.
//
// Trust: Hyper-V and PowerShell are Windows' own. The guest is hostile: it chooses the
// addresses that its integration services report, and the content of its screen. The output
// of the script is bounded and decoded strictly. Names and paths are data of the script, never a part of it.
//
//   - driver.go: the driver, and how it finds a VM
//   - hyperv.ps1, shell.go, system_*.go: the script; run it, decode its output
//   - record.go: what is kept in the VM's folder
//   - create.go: make and delete VMs
//   - run.go: start, stop, status
//   - snapshot.go: checkpoints
//   - look.go, keys.go, picture.go: screenshots, keys, consoles
//   - address.go: addresses
//   - check.go: what your machine lacks
package hyperv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/vm"
)

// Name is the driver's name in node files and records.
const Name = "hyperv"

// Options are the programs of a Driver; the zero value finds them.
type Options struct {
	PowerShell string // default: Windows PowerShell, on Windows only
}

// Driver runs VMs with Hyper-V. It implements vm.Driver.
type Driver struct{ options Options }

var _ vm.Driver = (*Driver)(nil)

// New returns a driver.
func New(o Options) *Driver { return &Driver{o} }

// Name is the driver's name in node files and records.
func (d *Driver) Name() string { return Name }

// Capabilities returns what the driver can do. Crashes is false, since Hyper-V does not report
// whether a VM was shut down or has crashed.
func (d *Driver) Capabilities() vm.Capabilities {
	return vm.Capabilities{
		Create: true, LiveSnapshots: true, TPM: true, SecureBoot: true, Screenshots: true, Keys: true,
		Networks: []vm.NetworkMode{vm.BridgeMode},
	}
}

// machine is a VM as Hyper-V reports it.
type machine struct {
	ID       string `json:"Id"`
	Name     string
	State    string  // Off, Running, Saved, Paused, …
	Uptime   float64 // seconds
	Notes    string
	Location string `json:"ConfigurationLocation"`
}

// maxMachines is the largest number of VMs that the driver accepts from Hyper-V.
const maxMachines = 10000

// find returns a VM as Hyper-V reports it, with the record in hyperv.json. The error is ErrAbsent
// if there is no such VM.
func (d *Driver) find(ctx context.Context, m vm.Machine) (machine, record, error) {
	kept, err := readRecord(m)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return machine{}, kept, err
	}
	var found struct{ VMs list[machine] }
	err = d.ask(ctx, "list the VMs", "list", nil, &found)
	if err != nil {
		return machine{}, kept, err
	}
	if len(found.VMs) > maxMachines {
		return machine{}, kept, fmt.Errorf("list the VMs: Hyper-V reports more than %d", maxMachines)
	}
	for _, one := range found.VMs {
		if err := checkID(one.ID); err != nil {
			return machine{}, kept, fmt.Errorf("list the VMs: %w", err)
		}
		if is(one, m, kept) {
			return one, kept, nil
		}
	}
	return machine{}, kept, vm.ErrAbsent
}

// is reports whether a VM that Hyper-V reports is the VM of a record.
func is(one machine, m vm.Machine, kept record) bool {
	if kept.ID != "" {
		return strings.EqualFold(one.ID, kept.ID)
	}
	return one.Notes == notes(m) || within(one.Location, folder(m))
}

// within reports whether a path is a folder or is in it, on a file system that ignores case.
func within(path, folder string) bool {
	path, folder = strings.ToLower(filepath.Clean(path)), strings.ToLower(folder)
	return path == folder || strings.HasPrefix(path, folder+string(os.PathSeparator))
}

// notes returns the text that marks a VM of Hyper-V as the VM of a record.
func notes(m vm.Machine) string { return "swdt " + m.UUID }

// folder returns the folder with all files that Hyper-V keeps for a VM.
func folder(m vm.Machine) string { return filepath.Join(m.Folder, "hyperv") }
