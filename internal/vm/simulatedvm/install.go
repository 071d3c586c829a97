package simulatedvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
)

// serialFile has the text that the guest has sent to the serial port.
const serialFile = "simulated.serial"

// The files of a published image.
const (
	goldenFile = "golden.disk"
	varsFile   = "golden.vars"
)

// Frame is a moment of an imagined installation. Each look at a VM with CDs shows the next frame.
// After the last frame, nothing changes any more.
type Frame struct {
	State   vm.State // "": Running
	Reason  string
	Resets  int
	Loaded  int64  // bytes
	Written int64  // bytes
	Screen  byte   // the grey of the screen
	Serial  string // what the guest sends
}

// Installation returns the frames of an installation that succeeds.
func Installation() []Frame {
	const megabyte = 1 << 20
	return []Frame{
		{Loaded: 400 * megabyte, Screen: 1},
		{Loaded: 900 * megabyte, Written: 900 * megabyte, Screen: 2},
		{Loaded: 900 * megabyte, Written: 900 * megabyte, Resets: 1, Screen: 3,
			Serial: "BdsDxe: starting Boot0004\r\nSWDT stage=openssh begin\r\nSWDT stage=openssh ok\r\n"},
		{Loaded: 900 * megabyte, Written: 990 * megabyte, Resets: 1, Screen: 4, Serial: "\r\nSWDT exit=0\r\n"},
		{State: vm.Stopped, Loaded: 900 * megabyte, Written: 990 * megabyte, Resets: 1},
	}
}

// BestAccelerator returns the record's accelerator. If the record names none, it returns
// vm.Emulated if Slow is set, and the driver's name if Slow is not set.
func (d *Driver) BestAccelerator(_ context.Context, m vm.Machine) (string, error) {
	switch {
	case m.Accelerator != "":
		return m.Accelerator, nil
	case d.Slow:
		return vm.Emulated, nil
	}
	return Name, nil
}

// Observe returns an Observer, which shows the frames of an installation for a VM with CDs.
func (d *Driver) Observe(_ context.Context, m vm.Machine) (vm.Observer, error) {
	s, err := running(m)
	if err != nil {
		return nil, err
	}
	frames := d.Frames
	if frames == nil {
		frames = Installation()
	}
	if len(m.Discs) == 0 {
		frames = nil
	}
	return &observer{machine: m, frames: frames, resets: s.Resets}, nil
}

type observer struct {
	machine vm.Machine
	frames  []Frame // not shown yet
	resets  int     // before Observe
	last    Frame
	closed  bool
}

func (o *observer) Close() error {
	o.closed = true
	return nil
}

var errClosed = errors.New("the observer is closed")

func (o *observer) Look(context.Context) (vm.Signs, error) {
	if o.closed {
		return vm.Signs{}, errClosed
	}
	s, err := read(o.machine)
	if err != nil {
		return vm.Signs{}, err
	}
	if len(o.frames) > 0 && executes(s) {
		o.last, o.frames = o.frames[0], o.frames[1:]
		if err := o.show(&s); err != nil {
			return vm.Signs{}, err
		}
	}
	signs := vm.Signs{
		State: s.State, Reason: o.last.Reason, Resets: o.last.Resets + s.Resets - o.resets,
		Loaded: o.last.Loaded, Written: o.last.Written,
	}
	if executes(s) {
		var picture bytes.Buffer
		if err := draw(&picture, 128+o.last.Screen); err != nil {
			return vm.Signs{}, err
		}
		signs.Screen = picture.Bytes()
	}
	return signs, nil
}

// show makes the VM's files match the last frame.
func (o *observer) show(s *state) error {
	before, err := os.ReadFile(o.machineFile(serialFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := localfile.Replace(o.machineFile(serialFile), append(before, o.last.Serial...)); err != nil {
		return err
	}
	switch o.last.State {
	case "", vm.Running:
		return nil
	case vm.Stopped:
		_ = s.end() // end returns no error
	default:
		s.State = o.last.State
	}
	return write(o.machine, *s)
}

func (o *observer) machineFile(name string) string { return filepath.Join(o.machine.Folder, name) }

// Serial returns the text that the frames have sent.
func (d *Driver) Serial(_ context.Context, m vm.Machine, from int64) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(m.Folder, serialFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text = text[min(from, int64(len(text))):]
	return text[:min(len(text), vm.MaxSerial)], nil
}

// ChangeDisc counts as done.
func (d *Driver) ChangeDisc(ctx context.Context, m vm.Machine, drive int) error {
	if _, err := running(m); err != nil {
		return err
	}
	if drive >= len(m.Discs) {
		return fmt.Errorf("change CD %d: the VM has %d CD drives", drive, len(m.Discs))
	}
	return d.begin(ctx, "change a CD", m)
}

// Publish moves the disk's file to a folder, and writes an empty file for the firmware variables
// there.
func (d *Driver) Publish(ctx context.Context, m vm.Machine, folder string) (vm.Published, error) {
	if err := d.begin(ctx, "publish", m); err != nil {
		return vm.Published{}, err
	}
	s, err := read(m)
	switch {
	case err != nil:
		return vm.Published{}, err
	case executes(s):
		return vm.Published{}, vm.ErrRunning
	case m.Image.Base != "":
		return vm.Published{}, vm.Unsupported(Name, "make an image of a disk that is laid over another")
	}
	disk := filepath.Join(m.Folder, diskFile)
	err = errors.Join(
		os.WriteFile(filepath.Join(folder, varsFile), nil, 0o444), //nolint:gosec // the folder is private
		os.Chmod(disk, 0o444), os.Rename(disk, filepath.Join(folder, goldenFile)),
		os.Remove(filepath.Join(m.Folder, stateFile)),
	)
	if err != nil {
		return vm.Published{}, fmt.Errorf("publish the image: %w", err)
	}
	return vm.Published{Disk: goldenFile, Vars: varsFile}, nil
}
