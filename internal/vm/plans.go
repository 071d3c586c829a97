package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Failed returns the report of a VM on which a command failed.
func Failed(name string, err error) Report {
	return Report{Name: name, Result: fleet.Failed, Error: err.Error()}
}

// PlanReport is the result of a dry run of create for one VM.
type PlanReport struct {
	fleet.Outcome
	Exists   bool              `json:"exists"`
	Machine  Machine           `json:"machine"`
	Folder   string            `json:"folder"`
	Problems []finding.Problem `json:"problems"`
	// Command is the command line that starts the VM; empty if the driver runs no program, or if
	// BuildsImage is set.
	Command []string `json:"command"`
	// BuildsImage is set if create would first build the golden image that machine.image.key
	// identifies.
	BuildsImage bool `json:"buildsImage"`

	words string
}

// Plans are the results of a dry run of create.
type Plans struct {
	VMs []PlanReport `json:"vms"`
}

// NewPlans returns the plans of several VMs.
func NewPlans(results []fleet.Result[Plan]) Plans {
	plans := Plans{VMs: []PlanReport{}}
	for _, result := range results {
		p := result.Value
		outcome := fleet.NewOutcome(result.Name(), changed, result.Err)
		if result.Err == nil && p.Exists {
			outcome.Result = unchanged
		}
		plans.VMs = append(plans.VMs, PlanReport{
			Outcome: outcome, Exists: p.Exists, Machine: p.Record.Machine, Folder: p.Record.Folder,
			Problems: p.Problems, Command: p.Command, BuildsImage: p.BuildsImage, words: p.Record.words(),
		})
	}
	return plans
}

// WriteText writes each plan that did not fail, including the plans of VMs that exist already. join
// quotes a command for the user's shell.
func (p Plans) WriteText(page *ui.Page, join func([]string) string) error {
	for _, plan := range p.VMs {
		if plan.Error != "" {
			continue
		}
		text := "would be created"
		if plan.Exists {
			text = "nothing to do: the VM exists"
		}
		if _, err := fmt.Fprintf(page, "VM %s: %s: %s\n  in %s\n", plan.Name, text, plan.words, plan.Folder); err != nil {
			return err
		}
		if plan.BuildsImage {
			_, err := fmt.Fprintf(page, "  golden image %s would be built first, which takes long: "+
				"`swdt vm image build --dry-run` shows how\n", plan.Machine.Image.Key)
			if err != nil {
				return err
			}
		}
		if err := WriteProblems(page, plan.Problems); err != nil {
			return err
		}
		if len(plan.Command) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(page, "  %s\n", join(plan.Command)); err != nil {
			return err
		}
	}
	return nil
}

// WriteProblems writes a list of the problems of your machine.
func WriteProblems(page *ui.Page, problems []finding.Problem) error {
	var entries []finding.Entry
	for _, p := range problems {
		entries = append(entries, finding.Entry{By: p.Check, Finding: p.Finding})
	}
	return finding.WriteList(page, entries)
}

// CheckReport is the result of a check for one VM.
type CheckReport struct {
	fleet.Outcome
	Driver   string            `json:"driver"`
	Problems []finding.Problem `json:"problems"`
}

// Checks are the results of a check of your machine.
type Checks struct {
	VMs []CheckReport `json:"vms"`
}

// Failed reports whether your machine cannot run at least one of the VMs.
func (c Checks) Failed() bool {
	for _, check := range c.VMs {
		if finding.Has(check.Problems, finding.Error) {
			return true
		}
	}
	return false
}

// Check reports what your machine lacks for the VMs of node files. Without node files, it reports
// what your machine lacks for every VM of the first driver.
func (s *Machines) Check(ctx context.Context, documents []config.Document) (Checks, error) {
	checks := Checks{VMs: []CheckReport{}}
	add := func(name string, driver Driver, m Machine, more ...finding.Problem) {
		problems := append(driver.Check(ctx, m), more...)
		finding.Sort(problems)
		outcome := fleet.NewOutcome(name, ok, nil)
		if finding.Has(problems, finding.Error) {
			outcome.Result = fleet.Failed
		}
		checks.VMs = append(checks.VMs, CheckReport{Outcome: outcome, Driver: driver.Name(), Problems: problems})
	}
	for _, document := range documents {
		record, err := s.planned(document)
		if err != nil {
			return checks, err
		}
		driver, err := s.driver(record.Driver)
		if err != nil {
			return checks, err
		}
		problems, err := s.settle(ctx, &record)
		if err != nil {
			return checks, err
		}
		add(record.Name, driver, record.Machine, problems...)
	}
	if len(documents) == 0 && len(s.drivers) > 0 {
		add("any VM", s.drivers[0], Machine{})
	}
	return checks, ctx.Err()
}

// WriteText writes the findings.
func (c Checks) WriteText(page *ui.Page) error {
	for _, check := range c.VMs {
		summary := "this machine can run it with " + check.Driver
		if check.Result == fleet.Failed {
			summary = "this machine cannot run it with " + check.Driver
		}
		if counts := finding.Counts(check.Problems); counts != "" {
			summary += ": " + counts
		}
		if _, err := fmt.Fprintf(page, "%s: %s\n", check.Name, summary); err != nil {
			return err
		}
		if err := WriteProblems(page, check.Problems); err != nil {
			return err
		}
	}
	return nil
}

// Exist reports whether each of these names is the name of a VM whose record can be read.
func (s *Machines) Exist(names ...string) bool {
	for _, name := range names {
		if _, err := s.store.Get(name); err != nil {
			return false
		}
	}
	return true
}

// Missing returns those of the given names that no VM has. It returns an error if a name is not
// permitted.
func (s *Machines) Missing(names ...string) (missing []string, err error) {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
		if _, err := s.store.Get(name); errors.Is(err, ErrUnknown) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// Names returns the names of all VMs whose records can be read.
func (s *Machines) Names() (names []string) {
	all, err := s.store.All()
	if err != nil {
		return nil
	}
	for _, found := range all {
		if found.Err == nil {
			names = append(names, found.Record.Name)
		}
	}
	return names
}

// Users returns a map with the key of each golden image over which the disks of VMs are laid, and
// the names of these VMs. If a VM's record cannot be read, Users returns an error beside the map,
// since that VM may use any of the images.
func (s *Machines) Users() (map[string][]string, error) {
	all, err := s.store.All()
	if err != nil {
		return nil, err
	}
	users := map[string][]string{}
	for _, found := range all {
		if found.Err != nil {
			err = errors.Join(err, found.Err)
			continue
		}
		if key := found.Record.Image.Key; key != "" {
			users[key] = append(users[key], found.Record.Name)
		}
	}
	return users, err
}

// SnapshotList is the list of a VM's snapshots.
type SnapshotList struct {
	VM        string     `json:"vm"`
	Snapshots []Snapshot `json:"snapshots"`
}

// Names returns the snapshots as snapshot/NAME.
func (l SnapshotList) Names() (names []string) {
	for _, snapshot := range l.Snapshots {
		names = append(names, "snapshot/"+snapshot.Name)
	}
	return names
}

// WriteText writes a table of snapshots.
func (l SnapshotList) WriteText(w io.Writer) error {
	var rows [][]string
	for _, s := range l.Snapshots {
		memory := "no"
		if s.Memory {
			memory = "yes"
		}
		size := ""
		if s.Size > 0 {
			size = ui.Size(s.Size)
		}
		rows = append(rows, []string{s.Name, ui.Age(time.Since(s.Taken)), memory, size})
	}
	return ui.TableOr(w, "VM "+l.VM+" has no snapshots; `swdt vm snapshot save` makes one",
		SnapshotColumns(ui.IsWide(w)), rows)
}

// SnapshotColumns returns the columns of the table of a SnapshotList.
func SnapshotColumns(bool) []string { return []string{"NAME", "AGE", "MEMORY", "SIZE"} }

// AddressList is the list of a VM's addresses.
type AddressList struct {
	VM        string    `json:"vm"`
	Addresses []Address `json:"addresses"`
}

// WriteText writes a table of addresses.
func (l AddressList) WriteText(w io.Writer) error {
	var rows [][]string
	for _, a := range l.Addresses {
		rows = append(rows, []string{a.IP.String(), strconv.Itoa(a.Port), a.Source})
	}
	return ui.Table(w, AddressColumns(ui.IsWide(w)), rows)
}

// AddressColumns returns the columns of the table of an AddressList.
func AddressColumns(bool) []string { return []string{"ADDRESS", "PORT", "SOURCE"} }

// ConsoleList is the list of a VM's consoles.
type ConsoleList struct {
	VM       string    `json:"vm"`
	Consoles []Console `json:"consoles"`
}

// WriteText writes a table of consoles.
func (l ConsoleList) WriteText(w io.Writer) error {
	header, rows := []string{"KIND", "ADDRESS"}, [][]string(nil)
	for _, c := range l.Consoles {
		row := []string{c.Kind, c.Address}
		if c.PasswordFile != "" {
			row, header = append(row, "in "+c.PasswordFile), []string{"KIND", "ADDRESS", "PASSWORD"}
		}
		rows = append(rows, row)
	}
	for i, row := range rows {
		rows[i] = append(row, make([]string, len(header)-len(row))...)
	}
	return ui.TableOr(w, "VM "+l.VM+" has no console", header, rows)
}

// Screen is the result of a screenshot.
type Screen struct {
	VM   string `json:"vm"`
	File string `json:"file"`
	Size int64  `json:"size"` // bytes
}

// WriteText writes the file's name and size.
func (s Screen) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "VM %s: screen saved as %s (%s)\n", s.VM, s.File, ui.Size(s.Size))
	return err
}

// Pressed is the result of pressing keys.
type Pressed struct {
	VM   string   `json:"vm"`
	Keys []string `json:"keys"`
}

// WriteText writes the number of keys.
func (p Pressed) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "VM %s: %s pressed\n", p.VM, several(len(p.Keys), "key"))
	return err
}

// WriteDetails writes the state of each VM, and below it the other values of the VM's report that
// are not empty, one in each line.
func (r Reports) WriteDetails(w io.Writer) error {
	for i, vm := range r.VMs {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := vm.writeDetails(w); err != nil {
			return err
		}
	}
	return nil
}

func (r Report) writeDetails(w io.Writer) error {
	state := coloured(r)
	if r.Reason != "" {
		state += ": " + r.Reason
	}
	if r.Since != nil {
		state += ", for " + ui.Age(time.Since(*r.Since))
	}
	if _, err := fmt.Fprintf(w, "VM %s is %s\n", r.Name, state); err != nil || r.Driver == "" {
		return err
	}
	rows := [][]string{
		{"  driver", r.Driver}, {"  accelerator", r.Accelerator}, {"  process", number(r.PID)}, {"  SSH", r.Address},
		{"  processors", strconv.Itoa(r.CPUs)}, {"  memory", size(r.Memory)},
		{"  disk", size(r.Disk) + ", " + ui.Size(r.Used) + " used on this machine"},
		{"  image", r.Image}, {"  network", r.Network.String() + ", " + r.Network.MAC},
	}
	for _, forward := range r.Network.Forwards {
		rows = append(rows, []string{"  port " + forward.Name,
			fmt.Sprintf("127.0.0.1:%d → %d", forward.HostPort, forward.GuestPort)})
	}
	rows = append(rows, [][]string{
		{"  key", r.Key}, {"  host key", r.KnownKeys}, {"  password", r.PasswordFile}, {"  folder", r.Folder},
	}...)
	var filled [][]string
	for _, row := range rows {
		if row[1] != "" {
			filled = append(filled, row)
		}
	}
	return ui.Lines(w, filled)
}
