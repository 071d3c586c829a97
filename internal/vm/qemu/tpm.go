package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Folders of a TPM's state while a snapshot is restored.
const (
	newTPM = "tpm.new" // the new state, before it replaces the old state
	oldTPM = "tpm.old" // the old state, until the new state has replaced it
)

// tpmLimit bounds the start and the end of swtpm, which need some milliseconds.
const tpmLimit = 20 * time.Second

// tpmPID returns swtpm's option for its PID file, which marks the process as the TPM of a VM. The
// path is relative to the VM's folder.
func tpmPID(m vm.Machine) []string { return []string{"--pid", "file=run/" + m.UUID + ".tpm"} }

// startTPM starts the VM's TPM and returns its process, which ends when QEMU's connection to it
// ends.
func (d *Driver) startTPM(ctx context.Context, p plan) (spawned, error) {
	path, err := program(d.options.TPM, installTPM)
	if err != nil {
		return spawned{}, err
	}
	f := filesOf(p.Machine)
	if err := makePrivate(f.tpm()); err != nil {
		return spawned{}, err
	}
	// The paths are relative to the VM's folder, since swtpm cannot escape a comma in a path.
	args := append([]string{"socket", "--tpm2", "--terminate", "--tpmstate", "dir=tpm,mode=0600",
		"--ctrl", "type=unixio,mode=0600,path=" + p.sockets.tpm()}, tpmPID(p.Machine)...)
	log := output{out: f.tpmLog(), messages: f.tpmLog(), maxMessages: maxLog}
	tpm, err := spawn(p.Machine, log, path, args...)
	if err != nil {
		return tpm, err
	}
	// swtpm would end with the first connection, so the condition only looks for the socket's file.
	err = wait.Condition{
		Name: "the TPM to start", Interval: 5 * time.Millisecond, MaxInterval: 50 * time.Millisecond, Limit: tpmLimit,
		Look: func(context.Context) error {
			select {
			case <-tpm.ended:
				return wait.Stop(fmt.Errorf("start the TPM: swtpm ended at once: %s", lastLines(f.tpmLog())))
			default:
			}
			_, err := os.Lstat(p.sockets.tpm())
			return err
		},
	}.Wait(ctx)
	return tpm, err
}

// endTPM ends the VM's TPM after its QEMU, also one that no record names. swtpm should end by itself. If it does not,
// endTPM sends SIGTERM, then SIGKILL.
func endTPM(ctx context.Context, m vm.Machine) error {
	if !m.Firmware.TPM {
		return nil
	}
	return endAll(ctx, "the TPM", process.FindAll(tpmPID(m)...))
}

// maxTPMFile bounds a file of a TPM's state, in bytes. Such a file has some kilobytes.
const maxTPMFile = 16 << 20

// copyTPM copies the state of a TPM that does not run to a folder that does not exist.
func copyTPM(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == ".lock" {
			continue
		}
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), maxTPMFile); err != nil {
			return err
		}
	}
	return nil
}

// restoreTPM replaces the state of a TPM by a copy of the state in another folder. If restoreTPM is
// interrupted at any point, recoverTPM finds either the old state or the new state.
func restoreTPM(m vm.Machine, from string) error {
	f := filesOf(m)
	if err := errors.Join(recoverTPM(m), os.RemoveAll(f.in(newTPM))); err != nil {
		return err
	}
	if err := copyTPM(from, f.in(newTPM)); err != nil {
		return err
	}
	if err := os.Rename(f.tpm(), f.in(oldTPM)); err != nil {
		return err
	}
	if err := os.Rename(f.in(newTPM), f.tpm()); err != nil {
		return err
	}
	return os.RemoveAll(f.in(oldTPM))
}

// recoverTPM completes or undoes a restoreTPM that was interrupted.
func recoverTPM(m vm.Machine) error {
	f := filesOf(m)
	if exists(f.in(oldTPM)) && !exists(f.tpm()) {
		return os.Rename(f.in(oldTPM), f.tpm())
	}
	return errors.Join(os.RemoveAll(f.in(oldTPM)), os.RemoveAll(f.in(newTPM)))
}
