package vm

import "context"

// Installer is a Driver with the capability Installs. It observes an installation from outside,
// since Windows Setup reports nothing by itself, and makes an image of the VM's disk.
type Installer interface {
	Driver
	// BestAccelerator returns the accelerator that Start would use: the one that the record names,
	// or else the best one that works. A driver without accelerators returns its own name.
	BestAccelerator(ctx context.Context, m Machine) (string, error)
	// Observe begins to count the activity of a running VM. At most one Observer of a VM may be
	// open, and the caller must close it before ending the VM. Errors: ErrStopped.
	Observe(ctx context.Context, m Machine) (Observer, error)
	// Serial returns at most MaxSerial of the bytes that the guest has sent to its first serial
	// port since the VM was last started, beginning at the offset from. It also works for a VM that
	// has ended, until the VM starts again or is deleted.
	Serial(ctx context.Context, m Machine, from int64) ([]byte, error)
	// ChangeDisc makes a CD drive of a running VM read its file of Machine.Discs anew, which was replaced. The guest
	// sees another medium. Errors: ErrStopped.
	ChangeDisc(ctx context.Context, m Machine, drive int) error
	// Publish moves the disk and the firmware variables of a stopped VM to a folder of the same
	// file system, as read-only files. The VM is absent afterwards; Delete removes its other
	// files. Errors: ErrAbsent; ErrRunning; ErrUnsupported for a disk that is laid over an image.
	Publish(ctx context.Context, m Machine, folder string) (Published, error)
}

// MaxSerial bounds a result of Installer.Serial in bytes.
const MaxSerial = 64 << 10

// Emulated is the accelerator that emulates the processor. It is at least ten times slower than the
// others.
const Emulated = "tcg"

// Observer counts the activity of a running VM.
type Observer interface {
	// Look returns the counts. If the VM has ended, Look returns no error; Signs.State reports that
	// the VM has ended.
	Look(ctx context.Context) (Signs, error)
	Close() error
}

// Signs are the activity of a VM as it is seen from outside.
type Signs struct {
	State   State
	Reason  string // explains Paused and Crashed
	Resets  int    // since Observe
	Loaded  int64  // bytes that were read from the CDs since power-on
	Written int64  // bytes that were written to the disk since power-on
	Screen  []byte // the present screen as PNG; nil if the screen cannot be seen
}

// Published names the files of an image, in the folder that Publish moved them to.
type Published struct {
	Disk string `json:"disk"`
	Vars string `json:"vars"` // the firmware's variables; empty if the driver keeps no variables
}
