package vm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile/earlier"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
	"github.com/swdt-dev/swdt/internal/vm/network"
)

// cleanLimit bounds the removal of the remains of a failed creation.
const cleanLimit = 30 * time.Second

// Machines are your VMs: their records and the drivers that run them. Each method that changes a VM
// holds the VM's lock, so that several swdt commands can run at once.
type Machines struct {
	store   *Store
	drivers []Driver
	command string
	docker  network.Docker         // the engine whose networks the VMs can be on
	images  func() (Images, error) // opens the golden images; nil if swdt installs from no ISO
	times   earlier.Times          // the durations of earlier work
	starts  *starts                // the starts of VMs by this process
}

// NewMachines returns the VMs of a store. command is the command line of this process. If
// another process finds a VM busy, its error names that command line.
func NewMachines(store *Store, command string, drivers ...Driver) *Machines {
	return &Machines{
		store: store, drivers: drivers, command: command, docker: network.DockerAt(""),
		starts: &starts{at: map[string]time.Time{}},
	}
}

// WithTimes sets the store that remembers how long work on your VMs takes, and returns s. Without
// this store, there are no estimates.
func (s *Machines) WithTimes(times earlier.Times) *Machines {
	s.times = times
	return s
}

// Times returns the store that remembers how long work on your VMs takes.
func (s *Machines) Times() earlier.Times { return s.times }

// Drivers returns the names of the drivers.
func (s *Machines) Drivers() (names []string) {
	for _, driver := range s.drivers {
		names = append(names, driver.Name())
	}
	return names
}

// Driver returns the driver with this name.
func (s *Machines) Driver(name string) (Driver, error) { return s.driver(name) }

func (s *Machines) driver(name string) (Driver, error) {
	for _, driver := range s.drivers {
		if driver.Name() == name {
			return driver, nil
		}
	}
	return nil, fmt.Errorf("this swdt has no driver %s; its drivers are %s", name, ui.Alternatives(s.Drivers()))
}

// CheckError reports that your machine cannot run a VM.
type CheckError struct{ Problems []finding.Problem }

func (e *CheckError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s: %s; %s", p.Check, p.What, p.Remedy))
	}
	return "your machine cannot run the VM:\n" + strings.Join(lines, "\n")
}

// Plan is the VM that Create would make.
type Plan struct {
	Record   Record
	Problems []finding.Problem // of your machine
	Command  []string          // command line of the VM; nil if the driver runs no program, or BuildsImage is set
	Exists   bool
	// BuildsImage is set if Create would first build the golden image.
	BuildsImage bool
}

// Plan returns the VM that Create would make from a node's spec.machine. If the VM has a record
// already, the plan has that record. Plan changes nothing.
func (s *Machines) Plan(ctx context.Context, document config.Document, report ui.Reporter) (Plan, error) {
	r, err := s.planned(document)
	if err != nil {
		return Plan{}, err
	}
	driver, err := s.driver(r.Driver)
	if err != nil {
		return Plan{}, err
	}
	problems, err := s.settle(ctx, &r)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Problems: append(driver.Check(ctx, r.Machine), problems...)}
	if plan.BuildsImage, err = s.findImage(ctx, document, &r, report); err != nil {
		return Plan{}, err
	}
	plan.Record = r
	if !finding.Has(plan.Problems, finding.Error) {
		if err := s.adopt(ctx, driver, &plan.Record); err != nil {
			return plan, err
		}
	}
	if made, err := s.store.Get(r.Name); err == nil {
		plan.Record, plan.Exists = made, made.Complete
		plan.BuildsImage = plan.BuildsImage && !made.Complete
	}
	if !plan.Exists {
		if err := plan.Record.usePassword(document); err != nil {
			return plan, err
		}
	}
	starts, ok := driver.(interface {
		CommandLine(m Machine) ([]string, error)
	})
	if ok && !plan.BuildsImage { // an image that is not built yet has no paths
		if plan.Command, err = starts.CommandLine(plan.Record.Machine); err != nil {
			return plan, fmt.Errorf("make the VM's command line: %w", err)
		}
	}
	return plan, nil
}

// findImage lays a planned VM over the golden image of its node file, if the node file names an
// ISO. It reports whether the image must be built first.
func (s *Machines) findImage(
	ctx context.Context, document config.Document, record *Record, r ui.Reporter,
) (build bool, err error) {
	if document.Node.Spec.Machine.Image.ISO == "" {
		return false, nil
	}
	images, err := s.openImages()
	if err != nil {
		return false, err
	}
	image, err := images.Find(ctx, document, r)
	if err != nil {
		return false, err
	}
	record.over(image)
	return !image.Exists, nil
}

// useImage is like findImage, but first builds the image if it is missing. No process removes the
// image until the caller calls release.
func (s *Machines) useImage(
	ctx context.Context, document config.Document, record *Record, r ui.Reporter,
) (release func(), err error) {
	if document.Node.Spec.Machine.Image.ISO == "" {
		return func() {}, nil
	}
	images, err := s.openImages()
	if err != nil {
		return nil, err
	}
	image, release, err := images.Use(ctx, document, r)
	if err != nil {
		return nil, err
	}
	record.over(image)
	return release, nil
}

// Create makes the VM of a node's spec.machine, stopped. If the node file names an ISO and its
// golden image is missing, Create first builds the image. If the VM exists, Create only warns about
// differences between the VM and the node file. It first removes the remains of an interrupted
// creation. The error is a *CheckError if your machine cannot run the VM.
func (s *Machines) Create(ctx context.Context, document config.Document, r ui.Reporter) (Report, error) {
	record, err := s.planned(document)
	if err != nil {
		return Report{}, err
	}
	driver, err := s.driver(record.Driver)
	if err != nil {
		return Report{}, err
	}
	held, err := s.store.lock(ctx, record.Name, s.command, lockLimit)
	if err != nil {
		return Report{}, err
	}
	defer held.unlock()
	made, err := s.store.Get(record.Name)
	switch {
	case err == nil && made.Complete:
		if err := s.adopt(ctx, driver, &record); err != nil {
			return Report{}, err
		}
		if _, err := s.findImage(ctx, document, &record, r); err != nil {
			r.Warn("the image of the VM is not compared with the node file: %v", err)
			record.Image = made.Image
		}
		for _, difference := range differences(made, record) {
			r.Warn("the VM exists with another %s; `swdt vm delete` and `swdt vm create` make it anew", difference)
		}
		return s.report(ctx, made, "nothing to do: the VM exists"), nil
	case err == nil:
		r.Info("removing what an interrupted creation left")
		if err := s.discard(ctx, made, r); err != nil {
			return Report{}, err
		}
	case !errors.Is(err, ErrUnknown):
		return Report{}, err
	}
	problems, err := s.settle(ctx, &record)
	if err != nil {
		return Report{}, err
	}
	if err := CheckProblems(append(driver.Check(ctx, record.Machine), problems...), r); err != nil {
		return Report{}, err
	}
	if err := s.adopt(ctx, driver, &record); err != nil {
		return Report{}, err
	}
	if err := record.usePassword(document); err != nil {
		return Report{}, err
	}
	release, err := s.useImage(ctx, document, &record, r)
	if err != nil {
		return Report{}, err
	}
	defer release()
	if err := s.make(ctx, driver, record, document, r); err != nil {
		return Report{}, err
	}
	if record.adopted() != "" {
		return s.changed(ctx, record, "adopted: "+record.words()), nil
	}
	return s.changed(ctx, record, "created: "+record.words()), nil
}

// CheckProblems returns a *CheckError with the problems of your machine that are errors and are not
// ignored. It prints the other problems as warnings, except those of severity Info.
func CheckProblems(problems []finding.Problem, r ui.Reporter) error {
	e := &CheckError{}
	for _, p := range problems {
		switch {
		case p.Severity == finding.Error && !p.Ignored:
			e.Problems = append(e.Problems, p)
		case p.Severity != finding.Info:
			r.Warn("%s; %s", p.What, p.Remedy)
		}
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// make creates a VM that does not exist yet. If it fails, it removes everything of the VM, or its
// error names the remains.
func (s *Machines) make(
	ctx context.Context, driver Driver, record Record, document config.Document, r ui.Reporter,
) error {
	if adopted := record.adopted(); adopted != "" {
		r.Step("adopting %s as VM %s", adopted, record.Name)
	} else {
		r.Step("making VM %s", record.Name)
	}
	r.Debug("making its folder %s", record.Folder)
	err := s.store.add(record, func(folder string) error { return record.fill(folder, document) })
	if err != nil {
		return err
	}
	r.Debug("making its disk and firmware")
	if err = driver.Create(ctx, record.Machine); err == nil {
		r.Debug("completing its record")
		record.Complete = true
		err = writeRecord(record.Folder, record)
	}
	if err == nil {
		r.Debug("the VM is complete")
		return nil
	}
	err = fmt.Errorf("create VM %s: %w", record.Name, err)
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
	defer cancel()
	if left := s.discard(clean, record, r); left != nil {
		return errors.Join(err, fmt.Errorf("%w; `swdt vm delete` tries again", left))
	}
	return err
}

// discard removes everything of a VM, and first ends the VM if it runs. It only forgets an adopted
// VM, and does not end it. The caller holds the VM's lock.
func (s *Machines) discard(ctx context.Context, record Record, r ui.Reporter) error {
	driver, err := s.driver(record.Driver)
	if err != nil {
		return err
	}
	if driver.Capabilities().Create {
		r.Debug("ending it")
		if err := driver.Kill(ctx, record.Machine); err != nil {
			return fmt.Errorf("end VM %s: %w", record.Name, err)
		}
	}
	r.Debug("removing its disk and firmware")
	if err := driver.Delete(ctx, record.Machine); err != nil {
		return fmt.Errorf("delete VM %s: %w", record.Name, err)
	}
	r.Debug("removing its folder")
	if err := configcd.Wipe(record.file(firstStartCD)); err != nil {
		return fmt.Errorf("delete VM %s: %w", record.Name, err)
	}
	return s.store.remove(record.Folder)
}

// Delete ends a VM and removes everything of it, also if its creation was interrupted. It only
// releases an adopted VM. If there is no such VM, it does nothing.
func (s *Machines) Delete(ctx context.Context, name string, r ui.Reporter) (Report, error) {
	if err := CheckName(name); err != nil {
		return Report{}, err
	}
	held, err := s.store.lock(ctx, name, s.command, lockLimit)
	if err != nil {
		return Report{}, err
	}
	record, err := s.store.Get(name)
	if errors.Is(err, ErrUnknown) {
		held.remove()
		return Report{State: Absent, Driver: "", Result: unchanged, Name: name,
			Message: "nothing to do: there is no such VM"}, nil
	}
	if err != nil {
		held.unlock()
		return Report{}, err
	}
	message := "deleted"
	if adopted := record.adopted(); adopted != "" {
		message = "released: " + adopted + " stays as it is"
		r.Step("releasing VM %s", name)
	} else {
		r.Step("deleting VM %s", name)
	}
	if err := s.discard(ctx, record, r); err != nil {
		held.unlock()
		return Report{}, err
	}
	held.remove()
	report := record.report()
	report.State, report.Result, report.Message = Absent, changed, message
	return report, nil
}
