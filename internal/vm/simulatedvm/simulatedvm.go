// Package simulatedvm is a driver of virtual machines in which nothing runs: a VM is a few small
// files in its folder, so that several processes see the same VM. Tests use the driver, which can
// fail on demand.
//
//   - simulatedvm.go: the driver; create, start, stop and delete a VM
//   - snapshots.go: snapshots
//   - install.go: an imagined installation
//   - export.go: a disk as one file
//   - guest.go: screenshots, keys, addresses, and functions by which a test acts as the guest
package simulatedvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Name is the driver's name in node files and records.
const Name = "simulated"

// process is the number that stands for a VM's process.
const process = 4711

// The files of a VM.
const (
	stateFile = "simulated.json"
	diskFile  = "simulated.disk"
)

// Driver is the driver. The zero value is usable.
type Driver struct {
	// Fault, if it is set, is called before each operation that changes something, with
	// its name: create, delete, start, stop, kill, restart, save, restore, remove, publish,
	// export. If it returns an error, the operation fails with that error and changes nothing.
	Fault func(operation string, m vm.Machine) error
	// Free is the number of bytes on the imagined disk of your machine; 0 means that there is no
	// limit.
	Free int64
	// Findings are the results of Check.
	Findings []finding.Problem
	// Frames are the states of a VM with CDs during a simulated installation. If Frames is nil, the
	// function Installation returns them.
	Frames []Frame
	// Slow makes the driver report that it emulates the processor.
	Slow bool
}

// state is the content of a VM's file.
type state struct {
	State     vm.State   `json:"state"`
	Since     time.Time  `json:"since"`
	Ignores   bool       `json:"ignores"` // the guest ignores requests to shut down
	Keys      []string   `json:"keys"`    // the keys that were pressed
	Resets    int        `json:"resets"`  // by Restart
	Snapshots []snapshot `json:"snapshots"`
}

func (d *Driver) Name() string { return Name }

func (d *Driver) Capabilities() vm.Capabilities {
	return vm.Capabilities{
		Create: true, LiveSnapshots: true, Crashes: true, TPM: true, SecureBoot: true, Screenshots: true, Keys: true,
		Installs: true,
		Networks: []vm.NetworkMode{vm.UserMode, vm.BridgeMode, vm.TapMode},
	}
}

func (d *Driver) Check(context.Context, vm.Machine) []finding.Problem { return d.Findings }

// CommandLine returns an imagined command line.
func (d *Driver) CommandLine(m vm.Machine) ([]string, error) {
	return []string{"simulated-vm", "-uuid", m.UUID, "-name", m.Name}, nil
}

func (d *Driver) Create(ctx context.Context, m vm.Machine) error {
	if err := d.begin(ctx, "create", m); err != nil {
		return err
	}
	if _, err := read(m); !errors.Is(err, vm.ErrAbsent) {
		return errors.Join(err, vm.ErrExists)
	}
	if d.Free > 0 && m.Disk > d.Free {
		return &localfile.NoRoomError{Folder: m.Folder, Need: m.Disk, Free: d.Free}
	}
	if err := os.MkdirAll(m.Folder, 0o700); err != nil {
		return err
	}
	var content []byte
	if base, err := os.ReadFile(m.Image.Base); err == nil {
		content = base
	}
	if err := localfile.Replace(filepath.Join(m.Folder, diskFile), content); err != nil {
		return err
	}
	return write(m, state{State: vm.Stopped, Ignores: ignores(m)})
}

func (d *Driver) Delete(ctx context.Context, m vm.Machine) error {
	if err := d.begin(ctx, "delete", m); err != nil {
		return err
	}
	s, err := read(m)
	if err == nil && executes(s) {
		return vm.ErrRunning
	}
	for _, name := range []string{diskFile, serialFile, stateFile} {
		if err := os.Remove(filepath.Join(m.Folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (d *Driver) Start(ctx context.Context, m vm.Machine) error {
	return d.change(ctx, "start", m, func(s *state) error {
		if executes(*s) {
			return vm.ErrRunning
		}
		s.State, s.Since = vm.Running, time.Now()
		return orMissing(os.Remove(filepath.Join(m.Folder, serialFile)))
	})
}

// orMissing drops the error for a file that does not exist.
func orMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *Driver) Stop(ctx context.Context, m vm.Machine) error {
	err := d.change(ctx, "stop", m, func(s *state) error {
		if executes(*s) && s.Ignores {
			return vm.ErrIgnored
		}
		return s.end()
	})
	if errors.Is(err, vm.ErrIgnored) {
		<-ctx.Done()
	}
	return orAbsent(err)
}

func (d *Driver) Kill(ctx context.Context, m vm.Machine) error {
	return orAbsent(d.change(ctx, "kill", m, (*state).end))
}

func (d *Driver) Restart(ctx context.Context, m vm.Machine) error {
	return d.change(ctx, "restart", m, func(s *state) error {
		if !executes(*s) {
			return vm.ErrStopped
		}
		s.Resets++
		return nil
	})
}

func (d *Driver) Status(_ context.Context, m vm.Machine) (vm.Status, error) {
	s, err := read(m)
	switch {
	case errors.Is(err, vm.ErrAbsent):
		return vm.Status{State: vm.Absent}, nil
	case err != nil:
		return vm.Status{}, err
	}
	status := vm.Status{State: s.State, Since: s.Since}
	if executes(s) {
		status.PID, status.Accelerator = process, Name
	}
	if s.State == vm.Crashed {
		status.Reason = "its process was killed"
	}
	return status, nil
}

// begin returns the error of a context that has ended, or of a fault.
func (d *Driver) begin(ctx context.Context, operation string, m vm.Machine) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s the VM: %w", operation, ctx.Err())
	}
	if d.Fault == nil {
		return nil
	}
	return d.Fault(operation, m)
}

// change changes the state of a VM that exists.
func (d *Driver) change(ctx context.Context, operation string, m vm.Machine, how func(*state) error) error {
	if err := d.begin(ctx, operation, m); err != nil {
		return err
	}
	s, err := read(m)
	if err != nil {
		return err
	}
	if err := how(&s); err != nil {
		return err
	}
	return write(m, s)
}

// end sets the state to stopped. It returns nil.
func (s *state) end() error {
	s.State, s.Since = vm.Stopped, time.Time{}
	return nil
}

// orAbsent returns nil for an ErrAbsent, since a VM that does not exist does not run. It returns
// other errors as they are.
func orAbsent(err error) error {
	if errors.Is(err, vm.ErrAbsent) {
		return nil
	}
	return err
}

func executes(s state) bool { return s.State == vm.Running || s.State == vm.Paused }

// read returns a VM's state. The error is ErrAbsent if there is no such VM.
func read(m vm.Machine) (s state, err error) {
	text, err := os.ReadFile(filepath.Join(m.Folder, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, vm.ErrAbsent
	}
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

func write(m vm.Machine, s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return localfile.Replace(filepath.Join(m.Folder, stateFile), text)
}
