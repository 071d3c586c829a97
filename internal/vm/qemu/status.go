package qemu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// found is the state of a VM, as its files and its process show it.
type found struct {
	state   vm.State // never Paused, which only QEMU can report
	reason  string
	started started
	qemu    *process.Process // nil unless the VM runs
	last    int              // the process that run/pid names; 0 if run/pid names no process of this boot
}

// find determines the state of a VM from the VM's files and its process.
func (d *Driver) find(m vm.Machine) (found, error) {
	f := filesOf(m)
	if _, err := os.Lstat(f.disk()); errors.Is(err, fs.ErrNotExist) {
		return found{state: vm.Absent}, nil
	} else if err != nil {
		return found{}, err
	}
	now := found{state: vm.Stopped}
	if err := readRecord(f.started(), &now.started); errors.Is(err, fs.ErrNotExist) {
		return now, nil
	} else if err != nil {
		return found{}, err
	}
	if now.started.Boot != process.BootID() {
		return now, nil // your machine has rebooted since
	}
	pid, err := readPID(f.pid())
	if err != nil {
		return found{}, err
	}
	if pid == 0 {
		// The swdt that started QEMU may have been killed before QEMU wrote the file.
		if all := process.FindAll(mark(m)...); len(all) > 0 {
			now.state, now.qemu, now.last = vm.Running, all[0], all[0].PID
		}
		return now, nil
	}
	now.last = pid
	if now.qemu = processOf(m, pid); now.qemu != nil {
		now.state = vm.Running
		return now, nil
	}
	// QEMU may have removed the file just now, if it has ended in order.
	if again, err := readPID(f.pid()); err != nil || again == 0 {
		return now, err
	}
	now.state, now.reason = vm.Crashed, fmt.Sprintf("its process %d died without being asked", pid)
	if last := lastLines(f.log()); last != "" {
		now.reason += "; QEMU's log ends with: " + last
	}
	return now, nil
}

// running returns the state of a VM that runs, or ErrStopped.
func (d *Driver) running(action string, m vm.Machine) (found, error) {
	now, err := d.find(m)
	switch {
	case err != nil:
		return found{}, fmt.Errorf("%s: %w", action, err)
	case now.qemu == nil:
		return found{}, fmt.Errorf("%s: %w", action, vm.ErrStopped)
	}
	return now, nil
}

// answerLimit bounds a query to QEMU, which answers in milliseconds unless your machine is very
// busy.
const answerLimit = 10 * time.Second

// Status reports the VM's state from its files, its process and QEMU's answer.
func (d *Driver) Status(ctx context.Context, m vm.Machine) (vm.Status, error) {
	now, err := d.find(m)
	if err != nil {
		return vm.Status{}, err
	}
	if now.qemu == nil {
		return vm.Status{State: now.state, Reason: now.reason}, nil
	}
	status := vm.Status{
		State: vm.Running, Since: now.started.Since, PID: now.qemu.PID, Accelerator: now.started.Accelerator,
	}
	reason, err := d.paused(ctx, now)
	switch {
	case ctx.Err() != nil:
		return vm.Status{}, context.Cause(ctx)
	case err != nil && !now.qemu.Alive(): // QEMU has ended meanwhile
		return d.Status(ctx, m)
	case err != nil:
		status.State, status.Reason = vm.Paused, "QEMU does not answer: "+err.Error()
	case reason != "":
		status.State, status.Reason = vm.Paused, reason
	}
	return status, nil
}

// paused asks QEMU for the reason why the VM does not execute; "" if it executes.
func (d *Driver) paused(ctx context.Context, now found) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	client, err := qmp.Dial(bounded, sockets{now.started.Sockets}.look())
	if err != nil {
		return "", err
	}
	defer client.Close()
	state, err := runState(bounded, client)
	return pauses(state), err
}

// runState returns the run state that QEMU reports.
func runState(ctx context.Context, client *qmp.Client) (string, error) {
	var result struct {
		Status string `json:"status"`
	}
	err := client.Run(ctx, "query-status", nil, &result)
	return result.Status, err
}

// pauses explains a run state of QEMU in which the guest does not execute; "" if it executes.
func pauses(state string) string {
	switch state {
	case "running", "":
		return ""
	case "guest-panicked":
		return "the guest has panicked; `swdt vm restart --force` resets it"
	case "io-error":
		return "your disk is full, or it cannot be read; free some space, then restart the VM"
	case "internal-error":
		return "QEMU or the accelerator cannot execute the guest's code"
	case "save-vm", "restore-vm", "finish-migrate", "inmigrate":
		return "a snapshot is being saved or restored, or this has failed"
	case "prelaunch":
		return "its start has not ended"
	case "suspended":
		return "the guest sleeps"
	case "shutdown":
		return "it has shut down"
	}
	return "QEMU reports " + state
}
