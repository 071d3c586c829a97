package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qcow2"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// BestAccelerator returns the record's accelerator, or else the best one that works.
func (d *Driver) BestAccelerator(ctx context.Context, m vm.Machine) (string, error) {
	choice, err := d.accelerator(ctx, m)
	return choice.Name, err
}

// Observe connects to the VM's control socket, on which QEMU reports resets.
func (d *Driver) Observe(ctx context.Context, m vm.Machine) (vm.Observer, error) {
	now, err := d.running("observe", m)
	if err != nil {
		return nil, err
	}
	client, err := qmp.Dial(ctx, sockets{now.started.Sockets}.control())
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	return &observer{driver: d, machine: m, client: client}, nil
}

// observer counts the activity of a VM over one connection to QEMU.
type observer struct {
	driver  *Driver
	machine vm.Machine
	client  *qmp.Client
	last    vm.Signs
}

func (o *observer) Close() error { return o.client.Close() }

// Look returns the present counts. If the VM has ended, it returns the last counts with the VM's
// state.
func (o *observer) Look(ctx context.Context) (vm.Signs, error) {
	bounded, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	err := o.ask(bounded)
	for _, event := range o.client.Events() {
		if event == "RESET" {
			o.last.Resets++
		}
	}
	if err != nil {
		return o.ended(ctx, err)
	}
	return o.last, nil
}

// ask asks QEMU for all signs except the resets.
func (o *observer) ask(ctx context.Context) error {
	state, err := runState(ctx, o.client)
	if err != nil {
		return err
	}
	o.last.State, o.last.Reason = vm.Running, ""
	if reason := pauses(state); reason != "" && state != "shutdown" { // after a shutdown, the process ends soon
		o.last.State, o.last.Reason = vm.Paused, reason
	}
	if err := o.countBytes(ctx); err != nil {
		return err
	}
	picture, err := screen(ctx, o.machine, o.client)
	if err == nil {
		o.last.Screen = picture
	} else if refused := (*qmp.Error)(nil); !errors.As(err, &refused) {
		return err
	}
	return nil
}

// countBytes sums the bytes that were read from the CDs and written to the disk. QEMU counts since
// power on.
func (o *observer) countBytes(ctx context.Context) error {
	var devices []struct {
		Node  string `json:"node-name"`
		Stats struct {
			Read    int64 `json:"rd_bytes"`
			Written int64 `json:"wr_bytes"`
		} `json:"stats"`
	}
	if err := o.client.Run(ctx, "query-blockstats", nil, &devices); err != nil {
		return err
	}
	o.last.Loaded, o.last.Written = 0, 0
	for _, device := range devices {
		switch {
		case device.Node == nodes()[0]:
			o.last.Written = device.Stats.Written
		case strings.HasPrefix(device.Node, discNode):
			o.last.Loaded += device.Stats.Read
		}
	}
	return nil
}

// ended decides about a look that has failed. If the VM does not run any more, it returns the last
// counts with the VM's state. If the VM runs, it returns the error of the look.
func (o *observer) ended(ctx context.Context, failed error) (vm.Signs, error) {
	now, err := o.driver.find(o.machine)
	if err != nil || now.qemu != nil || ctx.Err() != nil {
		return o.last, errors.Join(failed, err)
	}
	if err := endLogs(ctx, o.machine, now.started); err != nil { // so that Serial also returns the guest's last output
		return o.last, err
	}
	o.last.State, o.last.Reason = now.state, now.reason
	return o.last, nil
}

// Serial reads the log of the serial port.
func (d *Driver) Serial(_ context.Context, m vm.Machine, from int64) ([]byte, error) {
	file, err := os.Open(filesOf(m).serialLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the serial port: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, from, vm.MaxSerial))
	if err != nil {
		return nil, fmt.Errorf("read the serial port: %w", err)
	}
	return text, nil
}

// Publish moves the disk and the firmware's variables to a folder.
func (d *Driver) Publish(ctx context.Context, m vm.Machine, folder string) (vm.Published, error) {
	published := vm.Published{Disk: "golden.qcow2", Vars: "vars.qcow2"}
	now, err := d.find(m)
	switch {
	case err != nil:
		return vm.Published{}, err
	case now.state == vm.Absent:
		return vm.Published{}, vm.ErrAbsent
	case now.qemu != nil:
		return vm.Published{}, vm.ErrRunning
	case m.Image.Base != "":
		return vm.Published{}, vm.Unsupported(Name, "make an image of a disk that is laid over another")
	}
	f := filesOf(m)
	// The disk is moved last, since a VM without a disk counts as absent.
	for _, move := range []struct{ from, to string }{{f.vars(), published.Vars}, {f.disk(), published.Disk}} {
		if err := context.Cause(ctx); err != nil {
			return vm.Published{}, err
		}
		if err := publish(move.from, filepath.Join(folder, move.to)); err != nil {
			return vm.Published{}, fmt.Errorf("publish the image: %w", err)
		}
	}
	return published, nil
}

// publish moves a disk image and makes it read-only. The image must consist of one file.
func publish(from, to string) error {
	if _, err := qcow2.Standalone(from); err != nil {
		return err
	}
	file, err := os.OpenFile(from, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = errors.Join(file.Sync(), file.Chmod(0o444), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(from, to)
}
