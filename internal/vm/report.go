package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

// States of a VM, in addition to the states that its driver reports.
const (
	Incomplete State = "incomplete" // the VM's creation was interrupted
	Busy       State = "busy"       // another swdt works on the VM
	Damaged    State = "damaged"    // the VM's record, disk or domain cannot be used, or its state is not known
)

// Results of a command for one VM. Commands for nodes have the same results.
const (
	ok        = fleet.OK
	changed   = fleet.Changed
	unchanged = fleet.Unchanged
)

// Report is a command's result for one VM.
type Report struct {
	Name string `json:"name"`
	// Result is ok, changed, unchanged or failed.
	Result string `json:"result"`
	Error  string `json:"error"`
	// Message describes the change; empty for a command that only reports.
	Message string `json:"message"`
	State   State  `json:"state"`
	// Reason explains the states paused, crashed, incomplete, busy and damaged; it is empty in
	// other states.
	Reason string     `json:"reason"`
	Since  *time.Time `json:"since"` // when the VM started; null if that is not known, or if the VM is off
	PID    int        `json:"pid"`
	Driver string     `json:"driver"`
	// Accelerator is the accelerator in use.
	Accelerator string `json:"accelerator"`
	// Address is host:port of the guest's SSH server, empty if it is not known.
	Address   string    `json:"address"`
	CPUs      int       `json:"cpus"`
	Memory    int64     `json:"memory"` // bytes
	Disk      int64     `json:"disk"`   // bytes that the guest sees
	Used      int64     `json:"used"`   // bytes on your machine's disk
	Image     string    `json:"image"`  // path of the image below the VM's disk
	Network   Network   `json:"network"`
	Created   time.Time `json:"created"`
	Folder    string    `json:"folder"`
	Key       string    `json:"key"`        // path of the VM's private SSH key
	KnownKeys string    `json:"knownHosts"` // path of the file with the VM's host key
	// PasswordFile is the path of the file in which swdt keeps the Administrator's password, for a
	// VM that is made from a golden image. It is empty for other VMs, or if the node file names the
	// password's source.
	PasswordFile string `json:"passwordFile"`
}

// Reports are the results for several VMs.
type Reports struct {
	VMs []Report `json:"vms"`
}

// Names returns the VMs that did not fail, as vm/NAME.
func (r Reports) Names() (names []string) {
	for _, vm := range r.VMs {
		if vm.Error == "" {
			names = append(names, "vm/"+vm.Name)
		}
	}
	return names
}

// report returns a report with only the values that are known without the driver; its State is
// Stopped.
func (r Record) report() Report {
	return Report{
		Name: r.Name, Result: ok, State: Stopped, Driver: r.Driver, CPUs: r.CPUs, Memory: r.Memory, Disk: r.Disk,
		Image:   r.Image.Base,
		Network: r.Network, Created: r.Created, Folder: r.Folder, Key: r.Key(), KnownKeys: r.KnownHosts(),
		PasswordFile: r.password(),
		Used:         Used(r.Folder), Address: r.plannedAddress(),
	}
}

// Used returns how many bytes the regular files of a folder take on your machine's disk. It skips
// files and folders that it cannot examine.
func Used(folder string) (bytes int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a file that vanishes meanwhile uses nothing
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += localfile.Allocated(info)
		}
		return nil
	})
	return bytes
}

// sshPort returns the port of 127.0.0.1 that leads to the guest's SSH server, or 0.
func (r Record) sshPort() int {
	for _, forward := range r.Network.Forwards {
		if forward.Name == sshForward {
			return forward.HostPort
		}
	}
	return 0
}

// plannedAddress returns the address of the guest's SSH server as far as it is known
// before the guest runs.
func (r Record) plannedAddress() string {
	switch {
	case r.sshPort() != 0:
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.sshPort()))
	case r.Network.Address != "":
		return net.JoinHostPort(r.Network.Address, "22")
	}
	return ""
}

// words describes a VM in a line.
func (r Record) words() string {
	words := fmt.Sprintf("%s, %s of memory, a disk of %s", several(r.CPUs, "CPU"), size(r.Memory), size(r.Disk))
	if r.Image.Base != "" {
		words += " over " + r.Image.String()
	}
	if adopted := r.adopted(); adopted != "" { // the firmware of an adopted VM may be a BIOS
		words = adopted + ", " + words
	} else {
		words += ", " + r.Firmware.String()
	}
	words += ", network " + orNone(r.Network.String())
	if address := r.plannedAddress(); address != "" {
		words += "; its SSH server will be at " + address
	}
	return words
}

func several(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// report returns a VM's report with its present state. If message is not empty, the command has
// changed nothing, and the result is unchanged.
func (s *Machines) report(ctx context.Context, record Record, message string) Report {
	report := record.report()
	s.look(ctx, record, &report)
	report.Message = message
	if message != "" {
		report.Result = unchanged
	}
	return report
}

// changed is like report for a command that changed the VM.
func (s *Machines) changed(ctx context.Context, record Record, message string) Report {
	report := s.report(ctx, record, message)
	report.Result = changed
	return report
}

// began is like changed for a VM that runs now. Its message also names the accelerator, the
// process and the address.
func (s *Machines) began(ctx context.Context, record Record, message string) Report {
	report := s.changed(ctx, record, message)
	words := []string{report.Accelerator}
	if report.PID != 0 {
		words = append(words, "process "+number(report.PID))
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	if len(words) > 0 {
		report.Message += " (" + strings.Join(words, ", ") + ")"
	}
	if report.Address != "" {
		report.Message += "; its SSH server is at " + report.Address
	}
	return report
}

// look fills in the values that the driver reports. The caller holds the VM's lock.
func (s *Machines) look(ctx context.Context, record Record, report *Report) {
	driver, err := s.driver(record.Driver)
	if err != nil {
		report.State, report.Reason = Damaged, err.Error()
		return
	}
	status, err := driver.Status(ctx, record.Machine)
	if err != nil {
		report.State, report.Reason = Damaged, fmt.Sprintf("its state is not known: %v", err)
		return
	}
	report.State, report.Reason, report.PID, report.Accelerator = status.State, status.Reason, status.PID,
		status.Accelerator
	if !status.Since.IsZero() {
		report.Since = &status.Since
	}
	if status.State == Absent {
		report.State, report.Reason = Damaged, "its disk or its domain is gone; `swdt vm delete` removes the rest"
	}
}

// listPatience is how long List waits for a command that works on a VM before it reports
// the VM as busy.
const listPatience = 500 * time.Millisecond

// List reports the VMs with these names, or all VMs if no name is given. The list includes VMs that
// are damaged or not complete. List asks the driver for the present state of each complete VM that
// no other command works on. A name that no VM has is reported as Absent.
func (s *Machines) List(ctx context.Context, names ...string) ([]Report, error) {
	all, err := s.store.All()
	if err != nil {
		return nil, err
	}
	reports := make([]Report, len(all))
	var looking sync.WaitGroup
	for i, found := range all {
		if len(names) == 0 || slices.Contains(names, found.Record.Name) {
			looking.Go(func() { reports[i] = s.found(ctx, found) })
		}
	}
	looking.Wait()
	reports = slices.DeleteFunc(reports, func(r Report) bool { return r.Name == "" })
	for _, name := range names {
		if !slices.ContainsFunc(reports, func(r Report) bool { return r.Name == name }) {
			reports = append(reports, Report{Name: name, Result: ok, State: Absent})
		}
	}
	return reports, nil
}

// found returns the report of one VM; the report has no name if the VM was deleted meanwhile.
func (s *Machines) found(ctx context.Context, f Found) Report {
	if f.Err != nil {
		name := f.Record.Name
		if name == "" {
			name = filepath.Base(f.Folder)
		}
		return Report{Name: name, Result: fleet.Failed, State: Damaged, Reason: f.Err.Error(), Error: f.Err.Error(),
			Folder: f.Folder}
	}
	report := f.Record.report()
	held, err := s.store.lock(ctx, f.Record.Name, s.command, listPatience)
	if err != nil {
		report.State, report.Reason = Busy, err.Error()
		var busy *BusyError
		if errors.As(err, &busy) && busy.Holder != nil {
			report.Reason = fmt.Sprintf("`%s` (process %d) works on it", busy.Holder.Command, busy.Holder.PID)
		}
		return report
	}
	defer held.unlock()
	record, err := s.store.Get(f.Record.Name)
	switch {
	case errors.Is(err, ErrUnknown):
		return Report{}
	case err != nil:
		report.State, report.Reason = Damaged, err.Error()
	case !record.Complete:
		report.State, report.Reason = Incomplete, "its creation was interrupted; `swdt vm delete` removes it"
	default:
		report = s.report(ctx, record, "")
	}
	return report
}

// Columns returns the columns of the table of VMs. If wide is true, they are those of -o wide.
func Columns(wide bool) []string {
	header := []string{"NAME", "DRIVER", "STATE", "AGE", "SSH", "CPUS", "MEMORY", "DISK", "USED"}
	if wide {
		header = append(header, "NETWORK", "MAC", "ACCELERATOR", "PID", "FOLDER")
	}
	return header
}

// WriteList writes a table of VMs.
func (r Reports) WriteList(w io.Writer) error {
	var rows [][]string
	for _, vm := range r.VMs {
		row := []string{vm.Name, vm.Driver, coloured(vm), age(vm), vm.Address, strconv.Itoa(vm.CPUs), size(vm.Memory),
			size(vm.Disk), ui.Size(vm.Used)}
		if ui.IsWide(w) {
			row = append(row, vm.Network.String(), vm.Network.MAC, vm.Accelerator, number(vm.PID), vm.Folder)
		}
		rows = append(rows, row)
	}
	if err := ui.TableOr(w, "there are no VMs; `swdt vm create` makes one", Columns(ui.IsWide(w)), rows); err != nil {
		return err
	}
	for _, vm := range r.VMs {
		if vm.Reason == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s is %s: %s\n", vm.Name, vm.State, vm.Reason); err != nil {
			return err
		}
	}
	return nil
}

func coloured(vm Report) string {
	switch vm.State {
	case Running:
		return ui.Good(string(vm.State))
	case Paused, Busy, Incomplete:
		return ui.Warn(string(vm.State))
	case Crashed, Damaged:
		return ui.Bad(string(vm.State))
	}
	return string(vm.State)
}

func age(vm Report) string {
	if vm.Since == nil {
		return ""
	}
	return ui.Age(time.Since(*vm.Since))
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// WriteMessages writes the message of each VM on which the command did not fail.
func (r Reports) WriteMessages(w io.Writer) error {
	for _, vm := range r.VMs {
		if vm.Error != "" {
			continue
		}
		text := fmt.Sprintf("VM %s: %s", vm.Name, vm.Message)
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}
