package vm

import "context"

// Installer is a Driver with the capability Installs. It shows an installation from
// outside, since Windows Setup reports nothing by itself, and makes an image of its disk.
type Installer interface {
	Driver
	// BestAccelerator returns the accelerator that Start would use: that of the record, or
	// else the best that works. A driver that has none returns its own name.
	BestAccelerator(ctx context.Context, m Machine) (string, error)
	// Observe begins to count the activity of a VM that runs. At most one Observer of a VM
	// may be open, and it is closed before the VM is ended. ErrStopped.
	Observe(ctx context.Context, m Machine) (Observer, error)
	// Serial returns the bytes that the guest has sent to its first serial port since the
	// VM was last started, from an offset on, at most MaxSerial bytes. It also works for a VM
	// that has ended, until the VM starts again or is deleted.
	Serial(ctx context.Context, m Machine, from int64) ([]byte, error)
	// Publish moves the disk and the firmware variables of a stopped VM to a folder of the
	// same file system, as write-once files. The VM is then absent; Delete removes the rest.
	// ErrAbsent; ErrRunning; ErrUnsupported for a disk that is laid over an image.
	Publish(ctx context.Context, m Machine, folder string) (Published, error)
}

// MaxSerial bounds a result of Installer.Serial in bytes.
const MaxSerial = 64 << 10

// Emulated is the accelerator that emulates the processor, ten times slower or worse.
const Emulated = "tcg"

// Observer counts the activity of a VM since Observe.
type Observer interface {
	// Look returns the counts. The VM's end is no error, but a State.
	Look(ctx context.Context) (Signs, error)
	Close() error
}

// Signs are the activity of a VM as it is seen from outside.
type Signs struct {
	State   State
	Reason  string // of Paused and Crashed
	Resets  int    // since Observe
	Loaded  int64  // bytes, from the CDs, since power on
	Written int64  // bytes, to the disk, since power on
	Screen  []byte // the present screen as PNG; nil if it cannot be seen
}

// Published names the files of an image, in the folder of Publish.
type Published struct {
	Disk string `json:"disk"`
	Vars string `json:"vars"` // the firmware's variables; empty if the driver keeps none
}
