// Package vmtest is the contract of vm.Driver as tests: every driver must pass the same suite. If
// two drivers behave differently, the driver that runs real VMs is right.
//
// A driver's test calls [Run] with a function that makes a [Fixture]. The suite tests the
// capabilities that the driver has. For the other capabilities, it tests that the driver refuses
// them, or tests nothing.
//
//   - vmtest.go: the fixture, and helpers that the tests use
//   - life.go: create, start, stop, kill, crash, delete
//   - look.go: screenshots, keys, consoles, addresses
//   - snapshots.go: snapshots of stopped and of running VMs
//   - install.go: the signs of an installation, and the image of its disk
package vmtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
)

// Fixture is a driver to test, with the means to act as its guests.
type Fixture struct {
	Driver vm.Driver

	// Machine returns the record of a small VM that does not exist yet, with a new folder. The VM's
	// guest shuts down on request. The fixture ends and deletes the VM after the test.
	Machine func(t *testing.T, name string) vm.Machine
	// Ignore makes the guest of a VM, which has not been created, ignore all requests to
	// shut down.
	Ignore func(t *testing.T, m *vm.Machine)
	// Booted waits until the firmware of a VM that was just started has begun to load the guest. It is
	// nil if the firmware bears a reset before that.
	Booted func(t *testing.T, m vm.Machine)
	// Crash kills the process of a running VM, as kill -9 does, and returns once the process has
	// ended.
	Crash func(t *testing.T, m vm.Machine)
	// Reboot puts a VM that runs or has crashed into the state that follows a reboot of your
	// machine.
	Reboot func(t *testing.T, m vm.Machine)
	// Write replaces the content of the disk of a stopped VM by a short text; Read returns this
	// text.
	Write func(t *testing.T, m vm.Machine, text string)
	Read  func(t *testing.T, m vm.Machine) string
}

// Run runs all tests of the suite except the named ones. An excepted test is about a situation that
// a virtualisation cannot imitate at all; another test of the same driver must test this situation.
// A test of a capability that the driver lacks only tests the refusal, or is skipped. Every test
// has a new fixture.
func Run(t *testing.T, fixture func(t *testing.T) Fixture, except ...string) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Fixture)
	}{
		{"Capabilities", capabilities},
		{"Absent", absent},
		{"Created", created},
		{"Adopted", adopted},
		{"Life", life},
		{"Ignored", ignored},
		{"Crashed", crashed},
		{"Rebooted", rebooted},
		{"Canceled", canceled},
		{"Odd names", oddNames},
		{"Look", look},
		{"Snapshots", snapshots},
		{"Live snapshots", liveSnapshots},
		{"Observed", observed},
		{"Published", published},
	} {
		if !slices.Contains(except, test.name) {
			t.Run(test.name, func(t *testing.T) { test.run(t, fixture(t)) })
		}
	}
}

// adopts reports whether the driver adopts VMs, and makes none.
func (f Fixture) adopts() bool {
	_, ok := f.Driver.(vm.Adopter)
	return ok
}

// stopLimit bounds the wait for a guest that shuts down. A guest without hardware virtualisation on
// a busy machine needs most of this time.
const stopLimit = 3 * time.Minute

// created returns a VM that was created.
func (f Fixture) created(t *testing.T, name string) vm.Machine {
	t.Helper()
	m := f.Machine(t, name)
	check(t, f.Driver.Create(t.Context(), m))
	return m
}

// running returns a VM that was started.
func (f Fixture) running(t *testing.T, name string) vm.Machine {
	t.Helper()
	m := f.created(t, name)
	check(t, f.Driver.Start(t.Context(), m))
	return m
}

// stop asks the guest to shut down, and waits until the VM has ended.
func (f Fixture) stop(t *testing.T, m vm.Machine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stopLimit)
	defer cancel()
	check(t, f.Driver.Stop(ctx, m))
}

// is verifies a VM's state and returns the VM's status.
func (f Fixture) is(t *testing.T, m vm.Machine, state vm.State) vm.Status {
	t.Helper()
	status, err := f.Driver.Status(t.Context(), m)
	check(t, err)
	if status.State != state {
		t.Fatalf("the VM is %s (%s), expected %s", status.State, status.Reason, state)
	}
	if explained := state == vm.Paused || state == vm.Crashed; explained != (status.Reason != "") {
		t.Errorf("state %s has the reason %q", state, status.Reason)
	}
	if executes := state == vm.Running || state == vm.Paused; executes == status.Since.IsZero() {
		t.Errorf("state %s has run since %v", state, status.Since)
	}
	return status
}

// check ends the test on an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails checks that an action failed with a certain error.
func fails(t *testing.T, action string, err, expected error) {
	t.Helper()
	if !errors.Is(err, expected) {
		t.Errorf("%s: got error %v, expected %v", action, err, expected)
	}
}
