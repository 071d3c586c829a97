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

// Driver runs VMs with one kind of virtualisation, such as QEMU or Hyper-V. Methods that work on a
// VM take the Machine of the VM's record. The caller of such a method, except for Check, holds the
// VM's lock. If a method that changes something fails, it leaves the VM as it was, or its error
// names the remains. The context of a method bounds the method. "Errors:" in a comment lists the
// errors that callers can test for; a method can also return other errors.
type Driver interface {
	// Name is the driver's name in node files and records.
	Name() string
	Capabilities() Capabilities
	// Check reports what your machine lacks for this VM. If m is the zero Machine, it reports only
	// what every VM needs. It changes nothing.
	Check(ctx context.Context, m Machine) []finding.Problem

	// Create makes the VM's disk, firmware variables and TPM, and starts nothing. Errors:
	// ErrExists.
	Create(ctx context.Context, m Machine) error
	// Delete removes everything that Create, Start and Save have made. A second call does nothing.
	// Errors: ErrRunning.
	Delete(ctx context.Context, m Machine) error

	// Start starts the VM and returns once the VM executes. Errors: ErrAbsent; ErrRunning if the VM
	// runs already; ErrPortTaken if another process has one of the forwarded ports.
	Start(ctx context.Context, m Machine) error
	// Stop asks the guest to shut down and waits until the VM has ended. If ctx ends first, the VM
	// continues, and Stop returns ErrIgnored. It is no error if the VM is stopped already; a
	// crashed VM counts as stopped after the call.
	Stop(ctx context.Context, m Machine) error
	// Kill ends the VM at once, as a power cut does. It is no error if the VM is stopped already; a
	// crashed VM counts as stopped after the call.
	Kill(ctx context.Context, m Machine) error
	// Restart resets the VM, as its reset button does. Errors: ErrStopped.
	Restart(ctx context.Context, m Machine) error
	// Status reports whether the VM runs. The result is correct at any moment, also after
	// swdt, the VM's process or your machine has crashed.
	Status(ctx context.Context, m Machine) (Status, error)

	// Save stores the VM's disk, firmware variables and TPM under a name, and also the memory if
	// the VM runs. Errors: ErrAbsent; ErrSnapshotExists; ErrUnsupported for a running VM if the
	// driver lacks the capability LiveSnapshots.
	Save(ctx context.Context, m Machine, name string) error
	// Restore returns the VM to the state of a snapshot; the VM's present state is lost. After
	// Restore, the VM runs if the snapshot has memory, and is stopped if the snapshot has none.
	// Errors: ErrNoSnapshot.
	Restore(ctx context.Context, m Machine, name string) error
	// Snapshots lists the snapshots, the oldest first.
	Snapshots(ctx context.Context, m Machine) ([]Snapshot, error)
	// RemoveSnapshot removes a snapshot and frees its space. Errors: ErrNoSnapshot.
	RemoveSnapshot(ctx context.Context, m Machine, name string) error

	// Addresses returns the guest's addresses that are known now, each with its source. If no
	// address is known, it returns no error and an empty slice. Errors: ErrStopped.
	Addresses(ctx context.Context, m Machine) ([]Address, error)
	// Screenshot writes a picture of the VM's screen as PNG. Errors: ErrStopped.
	Screenshot(ctx context.Context, m Machine, png io.Writer) error
	// SendKeys presses keys one after the other; each is a combination in QEMU's names, such as
	// "ret" or "ctrl-alt-delete". Errors: ErrStopped.
	SendKeys(ctx context.Context, m Machine, keys []string) error
	// Consoles returns the addresses at which a person can look at the VM. Errors: ErrStopped.
	Consoles(ctx context.Context, m Machine) ([]Console, error)
}

// Assigner is implemented by drivers whose VMs can be on a bridge of your machine, with an
// address that swdt has chosen.
type Assigner interface {
	// Assign gives the guest of a running VM its address, and returns once the guest uses the
	// address. The result describes what the guest has sent until Assign returns, also if there is
	// an error. The caller need not hold the VM's lock, since a guest takes minutes to start.
	// Errors: ErrStopped; dhcp.ErrDeclined.
	Assign(ctx context.Context, m Machine, lease dhcp.Lease) (dhcp.Heard, error)
}

// Adopter is a Driver that makes no VMs: it runs VMs that exist already, such as libvirt domains.
// Its Create only notes the VM in the record's folder. Its Delete only removes that note, also
// while the VM runs.
type Adopter interface {
	Driver
	// Adopt returns m, completed with the values of the VM that m names: UUID, processors, memory,
	// disk, firmware, network. It changes nothing. Errors: ErrAbsent.
	Adopt(ctx context.Context, m Machine) (Machine, error)
}

// GuestReader is a Driver that can read files of a running guest without the guest's network.
type GuestReader interface {
	// GuestFiles returns the content of the guest's files at these paths, by path. It leaves out
	// files that the guest's agent refuses to read, for example because they do not exist. It returns
	// an error if no agent in the guest answers, or if a file has more than limit bytes; the map then
	// has the files that were read before. A guest can return any content, so the caller must not
	// trust the content.
	GuestFiles(ctx context.Context, m Machine, limit int, paths ...string) (map[string][]byte, error)
}

// Capabilities report what a driver can do.
type Capabilities struct {
	Create        bool          `json:"create"` // false if the driver is an Adopter
	LiveSnapshots bool          `json:"liveSnapshots"`
	Crashes       bool          `json:"crashes"` // Status distinguishes a crash from a shutdown
	TPM           bool          `json:"tpm"`
	SecureBoot    bool          `json:"secureBoot"`
	Screenshots   bool          `json:"screenshots"`
	Keys          bool          `json:"keys"`
	Installs      bool          `json:"installs"` // the driver is an Installer
	Networks      []NetworkMode `json:"networks"`
}

// State is the activity of a VM.
type State string

const (
	Absent  State = "absent" // the VM was never created, or its creation failed, or it was deleted
	Stopped State = "stopped"
	Running State = "running"
	Paused  State = "paused"  // a panic of the guest, a full disk, or a person has paused the VM
	Crashed State = "crashed" // the VM's process ended unexpectedly
)

// Status is a VM's state with its circumstances.
type Status struct {
	State State `json:"state"`
	// Reason explains Paused and Crashed in a sentence; it is empty in other states.
	Reason string `json:"reason"`
	// Since is the time at which the VM started. It is zero if that time is not known, or if the VM
	// neither runs nor is paused.
	Since time.Time `json:"since"`
	// PID is the ID of the VM's process on your machine; 0 if there is none.
	PID int `json:"pid"`
	// Accelerator is the accelerator in use: kvm, hvf, whpx or tcg; empty if it is not known.
	Accelerator string `json:"accelerator"`
}

// Snapshot is a saved state of a VM.
type Snapshot struct {
	Name   string    `json:"name"`
	Taken  time.Time `json:"taken"`
	Memory bool      `json:"memory"` // true if the VM ran, so that the snapshot has its memory
	Size   int64     `json:"size"`   // bytes on your machine's disk, as the driver counts them; 0 if not known
}

// Address is an address of the guest.
type Address struct {
	IP netip.Addr `json:"ip"`
	// Source is one of: configured, guest agent, integration services, neighbour table, DHCP lease,
	// forward.
	Source string `json:"source"`
	// Port is the port of the guest's SSH server at this address; 22 unless it is forwarded.
	Port int `json:"port"`
}

// Console is a way to look at a VM.
type Console struct {
	Kind    string `json:"kind"`    // vnc, serial, spice, or Hyper-V's vmconnect
	Address string `json:"address"` // the path of a Unix socket or a terminal, HOST:PORT, or a command
	// PasswordFile is the path of the file with the password that the viewer needs; empty if no
	// password is needed. Only this user can read the file.
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
