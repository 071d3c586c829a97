package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm/dhcp"
)

// Driver runs VMs by one virtualisation. All methods take the VM's record; the caller
// holds the VM's lock. If a method that changes something fails, it leaves the VM as it was,
// or its error names the remains. Contexts bound every method.
type Driver interface {
	// Name is the driver's name in node files and records.
	Name() string
	Capabilities() Capabilities
	// Check reports what your machine lacks for this VM. If m is the zero Machine, it reports only
	// what every VM needs. It changes nothing.
	Check(ctx context.Context, m Machine) []finding.Problem

	// Create makes the VM's disk, firmware variables and TPM. Nothing runs yet. ErrExists.
	Create(ctx context.Context, m Machine) error
	// Delete removes everything that Create, Start and Save have made. ErrRunning. A
	// second call does nothing.
	Delete(ctx context.Context, m Machine) error

	// Start starts the VM and returns once it executes. ErrAbsent; ErrRunning: it runs
	// already; ErrPortTaken: another process has one of the forwarded ports.
	Start(ctx context.Context, m Machine) error
	// Stop asks the guest to shut down and waits until the VM has ended; if ctx ends
	// first, the VM continues, and Stop returns ErrIgnored. A stopped VM is no error; a
	// crashed one counts as stopped from then on.
	Stop(ctx context.Context, m Machine) error
	// Kill ends the VM at once, as a power cut does. A stopped VM is no error; a crashed
	// one counts as stopped from then on.
	Kill(ctx context.Context, m Machine) error
	// Restart resets the VM, as its reset button does. ErrStopped.
	Restart(ctx context.Context, m Machine) error
	// Status reports whether the VM runs. The result is correct at any moment, also after
	// swdt, the VM's process or your machine has crashed.
	Status(ctx context.Context, m Machine) (Status, error)

	// Save records the VM's disk, firmware variables and TPM under a name, and also the
	// memory if the VM runs. ErrAbsent; ErrSnapshotExists; ErrUnsupported for a
	// running VM without the capability LiveSnapshots.
	Save(ctx context.Context, m Machine, name string) error
	// Restore brings a snapshot back. The VM then runs if the snapshot has memory, and is
	// stopped otherwise. The VM's present state is lost. ErrNoSnapshot.
	Restore(ctx context.Context, m Machine, name string) error
	// Snapshots lists the snapshots, the oldest first.
	Snapshots(ctx context.Context, m Machine) ([]Snapshot, error)
	// RemoveSnapshot frees a snapshot's space. ErrNoSnapshot.
	RemoveSnapshot(ctx context.Context, m Machine, name string) error

	// Addresses returns the guest's addresses that are known now, each with its source;
	// none is no error. ErrStopped.
	Addresses(ctx context.Context, m Machine) ([]Address, error)
	// Screenshot writes the VM's screen as PNG. ErrStopped.
	Screenshot(ctx context.Context, m Machine, png io.Writer) error
	// SendKeys presses keys one after the other; each is a combination in QEMU's names,
	// such as "ret" or "ctrl-alt-delete". ErrStopped.
	SendKeys(ctx context.Context, m Machine, keys []string) error
	// Consoles returns the addresses at which a person can look at the VM. ErrStopped.
	Consoles(ctx context.Context, m Machine) ([]Console, error)
}

// Assigner is implemented by drivers whose VMs can be on a bridge of your machine, with an
// address that swdt has chosen.
type Assigner interface {
	// Assign gives the guest of a running VM its address, and returns once the guest uses
	// it. The result has what the guest has sent until then, also with an error. The caller
	// does not need the VM's lock: a guest takes minutes to start. ErrStopped, dhcp.ErrDeclined.
	Assign(ctx context.Context, m Machine, lease dhcp.Lease) (dhcp.Heard, error)
}

// Adopter is a Driver that makes no VMs: it runs one that exists, such as a libvirt domain.
// Its Create only remembers the VM in the record's folder, and its Delete only forgets it,
// also while it runs.
type Adopter interface {
	Driver
	// Adopt returns the record with the values of the VM that it names: UUID, processors,
	// memory, disk, firmware, network. It changes nothing. ErrAbsent.
	Adopt(ctx context.Context, m Machine) (Machine, error)
}

// GuestReader is a Driver that can read files of a running guest without the guest's network.
type GuestReader interface {
	// GuestFiles returns the content of the guest's files at these paths, by path. Files that do
	// not exist or have more than limit bytes are left out. The error reports that no program in
	// the guest answers. The guest chooses what it returns.
	GuestFiles(ctx context.Context, m Machine, limit int, paths ...string) (map[string][]byte, error)
}

// Capabilities are the parts of Driver that a driver has.
type Capabilities struct {
	Create        bool          `json:"create"` // else it is an Adopter
	LiveSnapshots bool          `json:"liveSnapshots"`
	Crashes       bool          `json:"crashes"` // it distinguishes a crash from a shutdown
	TPM           bool          `json:"tpm"`
	SecureBoot    bool          `json:"secureBoot"`
	Screenshots   bool          `json:"screenshots"`
	Keys          bool          `json:"keys"`
	Installs      bool          `json:"installs"` // it is an Installer
	Networks      []NetworkMode `json:"networks"`
}

// State is the activity of a VM.
type State string

const (
	Absent  State = "absent" // Create was never called, or has failed
	Stopped State = "stopped"
	Running State = "running"
	Paused  State = "paused"  // by a panic of the guest, a full disk, or a person
	Crashed State = "crashed" // its process ended unexpectedly
)

// Status is a VM's state with its circumstances.
type Status struct {
	State State `json:"state"`
	// Reason explains Paused and Crashed in a sentence; else it is empty.
	Reason string `json:"reason"`
	// Since is when it started; zero unless it runs or is paused, or if that is not known.
	Since time.Time `json:"since"`
	// PID is the process on your machine; 0 if there is none.
	PID int `json:"pid"`
	// Accelerator is the accelerator in use: kvm, hvf, whpx or tcg; empty if it is not known.
	Accelerator string `json:"accelerator"`
}

// Snapshot is a saved state of a VM.
type Snapshot struct {
	Name   string    `json:"name"`
	Taken  time.Time `json:"taken"`
	Memory bool      `json:"memory"` // the VM ran
	Size   int64     `json:"size"`   // bytes beyond the image that it is laid over; 0 if not known
}

// Address is an address of the guest.
type Address struct {
	IP netip.Addr `json:"ip"`
	// Source is configured, guest agent, integration services, neighbour table, DHCP lease or forward.
	Source string `json:"source"`
	// Port is the port of the guest's SSH server at this address; 22 unless it is forwarded.
	Port int `json:"port"`
}

// Console is a way to look at a VM.
type Console struct {
	Kind    string `json:"kind"`    // vnc, serial, spice, or vmconnect, which is Hyper-V's
	Address string `json:"address"` // a Unix socket's or a terminal's path, HOST:PORT, or a command
	// PasswordFile is the path of the file with the password that the viewer needs; empty if
	// there is none. Only this user can read it.
	PasswordFile string `json:"passwordFile"`
}

var (
	ErrAbsent         = errors.New("the VM does not exist")
	ErrExists         = errors.New("the VM exists already")
	ErrRunning        = errors.New("the VM is running")
	ErrStopped        = errors.New("the VM is not running")
	ErrIgnored        = errors.New("the guest has not shut down")
	ErrPortTaken      = errors.New("another process has the port")
	ErrNoSnapshot     = errors.New("there is no such snapshot")
	ErrSnapshotExists = errors.New("there is a snapshot of that name")
	ErrUnsupported    = errors.New("the driver cannot do that")
)

// Unsupported returns an ErrUnsupported that names the driver and the action.
func Unsupported(driver, action string) error {
	return fmt.Errorf("driver %s: %s: %w", driver, action, ErrUnsupported)
}
