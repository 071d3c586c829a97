// Package qemu is the driver that runs VMs with QEMU directly. Each VM is one process, which
// outlives swdt. swdt controls it by QEMU's own protocol on a Unix socket. There is no daemon.
//
// A VM's folder has, besides the record of package vm:
//
//	disk.qcow2   the disk, an overlay over the image        qemu.json    the type of machine
//	vars.qcow2   the firmware's variables                   snapshots/   records, TPM states
//	tpm/         the state of the TPM                       serial.log   the serial port
//	run/         pid, sockets, how it was started           qemu.log     QEMU's own messages
//	                                                        network.log  messages of the guest's network
//
// A log has the output since the VM's last start. If a log grows too large, it is renamed, for
// example to serial.log.1, and a new log begins. An older serial.log.1 is replaced.
//
// QEMU writes run/pid, and removes it when it ends in order. So a run/pid whose process does not
// run means a crash. After a reboot of your machine, run/pid means nothing.
//
// Errors name the step that failed; the caller adds the action and the VM's name.
//
// Trust: the guest, its agent's replies, and the image that a disk is laid over are
// hostile. QEMU never takes the format or a backing file from an image's header, and runs
// in a seccomp sandbox; other users of your machine can open neither folder nor sockets.
//
//   - driver.go: the driver and its programs
//   - files.go: the paths of a VM, and where its sockets are
//   - record.go: the records of a VM and of its process
//   - create.go, disk.go: make and remove disks
//   - commandline.go, devices.go: QEMU's command line
//   - start.go, tpm.go: start processes
//   - outbound.go: connect a guest to other machines, and not to this one
//   - logs.go: logs with a limit
//   - assign.go: give the guest its address
//   - stop.go: end processes
//   - status.go: the state of a VM
//   - snapshot.go, live.go: snapshots of stopped and running VMs
//   - install.go: the signs of an installation, and the image of its disk
//   - export.go: a disk as one file
//   - look.go, address.go: screenshots, keys, consoles, addresses, files of the guest
//   - check.go, check_machine.go: what your machine lacks
package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/accel"
	"github.com/swdt-dev/swdt/internal/vm/qemu/firmware"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Name is the driver's name in node files and records.
const Name = "qemu"

// Options are the programs and folders of a Driver; the zero value finds them.
type Options struct {
	QEMU  string // default: qemu-system-x86_64 in PATH
	Image string // default: qemu-img in PATH
	TPM   string // default: swtpm in PATH
	// Outbound is the program that connects guests to other machines; default: pasta in PATH.
	Outbound string
	// Firmware lists the folders with descriptors; default: the folders that package firmware
	// returns.
	Firmware []string
	// Cache is a folder for the verdict on the accelerator; default: swdt's cache.
	Cache string
}

// Driver runs VMs with QEMU. It implements vm.Driver.
type Driver struct {
	options   Options
	serialLog int // limit of the serial port's log: maxSerialLog, or less in tests
}

var (
	_ vm.Driver      = (*Driver)(nil)
	_ vm.Assigner    = (*Driver)(nil)
	_ vm.Installer   = (*Driver)(nil)
	_ vm.GuestReader = (*Driver)(nil)
)

// New returns a driver. If a program is missing, the methods that need the program return an error.
func New(o Options) *Driver {
	if o.QEMU == "" {
		o.QEMU = "qemu-system-x86_64"
	}
	if o.Image == "" {
		o.Image = "qemu-img"
	}
	if o.TPM == "" {
		o.TPM = "swtpm"
	}
	if o.Outbound == "" {
		o.Outbound = outerProgram
	}
	if o.Cache == "" {
		if cache, err := localfile.CacheFolder(); err == nil {
			o.Cache = filepath.Join(cache, "swdt")
		}
	}
	return &Driver{options: o, serialLog: maxSerialLog}
}

// Name is the driver's name in node files and records.
func (d *Driver) Name() string { return Name }

// Capabilities returns what the driver can do, with every accelerator.
func (d *Driver) Capabilities() vm.Capabilities {
	return vm.Capabilities{
		Create: true, LiveSnapshots: true, Crashes: true, TPM: true, SecureBoot: true, Screenshots: true, Keys: true,
		Installs: true,
		Networks: []vm.NetworkMode{vm.UserMode, vm.BridgeMode, vm.TapMode},
	}
}

// program returns the absolute path of a program.
func program(name, remedy string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w; %s", name, err, remedy)
	}
	return filepath.Abs(path)
}

// Remedies that name packages.
const (
	installQEMU = "install it: `sudo apt-get install qemu-system-x86 qemu-utils` on Debian and Ubuntu, " +
		"`brew install qemu` on macOS"
	installTPM      = "install it: `sudo apt-get install swtpm` on Debian and Ubuntu, `brew install swtpm` on macOS"
	installOutbound = "install it: `sudo apt-get install passt` on Debian and Ubuntu; only Linux has it. " +
		"Or remove outbound: true from the node file, or use mode: bridge"
)

func (d *Driver) qemu() (string, error) { return program(d.options.QEMU, installQEMU) }

// firmware returns the firmware for a VM.
func (d *Driver) firmware(m vm.Machine) (firmware.Firmware, error) {
	folders := d.options.Firmware
	if folders == nil {
		config, err := os.UserConfigDir()
		if err != nil {
			config = "" // without this folder, only the system's folders are searched
		}
		path, err := d.qemu()
		if err != nil {
			return firmware.Firmware{}, err
		}
		folders = firmware.Folders(config, path)
	}
	return firmware.Find(folders, firmware.Want{SecureBoot: m.Firmware.SecureBoot})
}

// accelerator returns the accelerator that the record of a VM names, or else the best one that
// works.
func (d *Driver) accelerator(ctx context.Context, m vm.Machine) (accel.Choice, error) {
	if m.Accelerator != "" {
		return accel.Choice{Name: m.Accelerator}, nil
	}
	return d.best(ctx)
}

func (d *Driver) best(ctx context.Context) (accel.Choice, error) {
	path, err := d.qemu()
	if err != nil {
		return accel.Choice{}, err
	}
	p := accel.Prober{Program: path}
	if d.options.Cache != "" {
		p.Cache = filepath.Join(d.options.Cache, "accelerator.json")
	}
	return p.Best(ctx)
}

// version returns QEMU's version.
func (d *Driver) version(ctx context.Context) (qmp.Version, error) {
	path, err := d.qemu()
	if err != nil {
		return qmp.Version{}, err
	}
	out, err := run(ctx, path, "--version")
	if err != nil {
		return qmp.Version{}, err
	}
	return parseVersion(out)
}

// parseVersion reads "QEMU emulator version 7.2.22 (Debian …)".
func parseVersion(text string) (qmp.Version, error) {
	var v qmp.Version
	_, after, found := strings.Cut(text, "version ")
	if n, err := fmt.Sscanf(after, "%d.%d.%d", &v.Major, &v.Minor, &v.Micro); !found || err != nil || n != 3 {
		return qmp.Version{}, fmt.Errorf("read QEMU's version: it prints %.80q", text)
	}
	return v, nil
}

// toolLimit bounds a program that examines or changes a disk. For example, qemu-img converts
// firmware variables, or saves a snapshot of a large disk.
const toolLimit = 5 * time.Minute

// maxOutput bounds how much of a program's output is kept, in bytes.
const maxOutput = 256 << 10

// run runs a program to its end and returns its output. If the program fails, the error contains the
// program's messages.
func run(ctx context.Context, path string, args ...string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	cmd := exec.CommandContext(bounded, path, args...)
	var out, messages limited
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &messages, environment()
	err := wait.Program(cmd)
	switch {
	case err == nil:
		return string(out), nil
	case bounded.Err() != nil:
		return "", fmt.Errorf("run %s: %w", filepath.Base(path), context.Cause(bounded))
	}
	var exit *exec.ExitError
	if text := strings.TrimSpace(string(messages)); errors.As(err, &exit) && text != "" {
		return "", fmt.Errorf("run %s: %w: %s", filepath.Base(path), err, text)
	}
	return "", fmt.Errorf("run %s: %w", filepath.Base(path), err)
}

// limited keeps the beginning of an output.
type limited []byte

func (l *limited) Write(p []byte) (int, error) {
	*l = append(*l, p[:min(len(p), maxOutput-len(*l))]...)
	return len(p), nil
}

// environment returns the variables that QEMU's programs need. A guest may break into these
// processes, so they get no other variables, such as passwords for nodes.
func environment() []string {
	var kept []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR"} {
		if value, ok := os.LookupEnv(name); ok {
			kept = append(kept, name+"="+value)
		}
	}
	return kept
}
