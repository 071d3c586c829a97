package setup_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	hnsState = `HKLM\SYSTEM\CurrentControlSet\Services\hns\State`
	// The key of image-builder's FeatureManagement values.
	overrides  = `HKLM\SYSTEM\CurrentControlSet\Policies\Microsoft\FeatureManagement\Overrides`
	exclusions = `HKLM\SOFTWARE\Microsoft\Windows Defender\Exclusions\`
	containerd = `C:\Program Files\containerd\bin\containerd.exe`
)

// hardened is a setup as published images have it.
func hardened() v1alpha1.Setup {
	on, off, text := uint32(1), false, "some text"
	return v1alpha1.Setup{
		Registry: []v1alpha1.RegistryValue{
			{Key: hnsState, Name: "EnableCompartmentNamespace", DWord: &on},
			{Key: overrides, Name: "1114842764", DWord: new(uint32)},
			{Key: hnsState, Name: "Text", String: &text},
		},
		AutomaticUpdates: &off,
		Defender: v1alpha1.Defender{
			ExcludePaths: []string{`C:\ProgramData\containerd`, `C:\it's`}, ExcludeProcesses: []string{containerd},
		},
	}
}

// addDefender gives the machine Microsoft Defender, which does not scan C:\mine.
func (l *lab) addDefender() {
	l.t.Helper()
	config := &agentv1.ServiceConfig{Name: "WinDefend", CommandLine: `C:\MsMpEng.exe`,
		StartType: agentv1.StartType_START_TYPE_AUTO}
	if _, err := l.node.Services.Create(l.t.Context(), config); err != nil {
		l.t.Fatal(err)
	}
	l.set(exclusions+"Paths", platform.RegistryValue{Name: `C:\mine`, Type: platform.RegistryDWord})
}

func (l *lab) set(key string, value platform.RegistryValue) {
	l.t.Helper()
	if err := l.machine.Process("test").Registry.Set(key, value); err != nil {
		l.t.Fatal(err)
	}
}

// registry returns all values of the machine's registry by key and name, and its keys.
func (l *lab) registry() map[string]platform.RegistryValue {
	l.t.Helper()
	all, registry := map[string]platform.RegistryValue{}, l.machine.Process("test").Registry
	var walk func(key string)
	walk = func(key string) {
		values, keys, err := registry.List(key)
		if err != nil {
			l.t.Fatal(err)
		}
		all[key] = platform.RegistryValue{}
		for _, value := range values {
			all[key+`\`+value.Name] = value
		}
		for _, below := range keys {
			walk(key + `\` + below)
		}
	}
	walk("HKLM")
	return all
}

func (l *lab) undo() []plan.StepResult {
	l.t.Helper()
	steps, err := setup.Undo(l.t.Context(), l.node)
	if err != nil {
		l.t.Fatal(err)
	}
	results, err := plan.Run(l.t.Context(), steps, plan.Options{Machine: l.node}, ui.Discard{})
	if err != nil {
		l.t.Fatal(err)
	}
	return results
}

func TestWhatSetupRecordsIsRestored(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	lab.addDefender()
	lab.set(hnsState, platform.RegistryValue{Name: "EnableCompartmentNamespace", Type: platform.RegistryString, String: "odd"})
	before := lab.registry()

	if changes := lab.changes(func() {
		results, err := lab.setup(hardened(), plan.Options{DryRun: true})
		if err != nil || results[0].Change != `set EnableCompartmentNamespace = 1, 1114842764 = 0, Text = "some text"` ||
			results[1].Change != "turn automatic updates off" ||
			results[2].Change != `exclude C:\ProgramData\containerd, C:\it's, `+containerd {
			t.Errorf("dry run: %v, %+v", err, results)
		}
	}); slices.ContainsFunc(changes, func(op simulated.Operation) bool { return strings.Contains(op.Target, "HKLM") }) {
		t.Errorf("a dry run made %v", changes)
	}
	if diff := cmp.Diff(before, lab.registry()); diff != "" {
		t.Errorf("after a dry run (-before +after):\n%s", diff)
	}

	for i, want := range []plan.State{plan.Changed, plan.OK} {
		results, err := lab.setup(hardened(), plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range results {
			if result.State != want {
				t.Errorf("run %d: %s: %s %s", i+1, result.Name, result.State, result.Message)
			}
		}
	}
	after := lab.registry()
	for name, want := range map[string]uint64{
		hnsState + `\EnableCompartmentNamespace`: 1, overrides + `\1114842764`: 0,
		v1alpha1.UpdatePolicyKey + `\NoAutoUpdate`: 1, v1alpha1.UpdatePolicyKey + `\AUOptions`: 2,
		exclusions + `Paths\C:\ProgramData\containerd`: 0, exclusions + `Paths\C:\it's`: 0,
		exclusions + `Paths\C:\mine`: 0, exclusions + `Processes\` + containerd: 0,
	} {
		if value, ok := after[name]; !ok || value.Type != platform.RegistryDWord || value.Integer != want {
			t.Errorf("%s is %+v, want %d", name, value, want)
		}
	}

	if results := lab.undo(); len(results) != 2 {
		t.Errorf("undone: %+v", results)
	}
	restored := lab.registry()
	// Windows keeps the keys of its lists of exclusions.
	maps.DeleteFunc(restored, func(name string, _ platform.RegistryValue) bool { return name == exclusions+"Processes" })
	if diff := cmp.Diff(before, restored); diff != "" {
		t.Errorf("the registry before the setup and after its undo:\n%s", diff)
	}
	if results := lab.undo(); len(results) > 0 {
		t.Errorf("a second undo: %+v", results)
	}
}

// A value that was changed since, by a person or a policy, is theirs.
func TestAValueChangedSinceStays(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	if _, err := lab.setup(hardened(), plan.Options{}); err != nil {
		t.Fatal(err)
	}
	lab.set(hnsState, platform.RegistryValue{Name: "EnableCompartmentNamespace", Type: platform.RegistryDWord, Integer: 7})
	results := lab.undo()
	if len(results) != 1 || !strings.Contains(results[0].Message, "EnableCompartmentNamespace") {
		t.Errorf("undone: %+v", results)
	}
	if is := lab.registry()[hnsState+`\EnableCompartmentNamespace`]; is.Integer != 7 {
		t.Errorf("it is %+v", is)
	}
}

// A setup that was interrupted between its record and its change, and an undo that was interrupted, are completed.
func TestAnInterruptedSetupIsRestored(t *testing.T) {
	for nth := 1; nth <= 4; nth++ { // NoAutoUpdate is set already
		lab := newLab(t, simulated.Options{})
		before, count := lab.registry(), 0
		lab.machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpRegistrySet && op.Phase == simulated.Before {
				if count++; count == nth {
					return simulated.Fail(fault.ErrPermission)
				}
			}
			return simulated.Continue()
		})
		if _, err := lab.setup(hardened(), plan.Options{}); !errors.Is(err, fault.ErrPermission) {
			t.Errorf("write %d: %v", nth, err)
		}
		lab.undo()
		if diff := cmp.Diff(before, lab.registry()); diff != "" {
			t.Errorf("write %d failed, before the setup and after its undo:\n%s", nth, diff)
		}
	}
}

// A second setup with another value, which is interrupted before it writes that value, keeps what was there before the
// first setup. After a setup that ends, the value of an earlier one is of another author.
func TestAnInterruptedSecondSetupIsRestored(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	odd := platform.RegistryValue{Name: "EnableCompartmentNamespace", Type: platform.RegistryString, String: "odd"}
	lab.set(hnsState, odd)
	before := lab.registry()
	with := func(value uint32) v1alpha1.Setup {
		return v1alpha1.Setup{Registry: []v1alpha1.RegistryValue{{Key: overrides, Name: "refused", DWord: new(uint32)},
			{Key: hnsState, Name: odd.Name, DWord: &value}}}
	}
	first := with(1)
	first.Registry = first.Registry[1:]
	if _, err := lab.setup(first, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	refuses := true
	lab.machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if refuses && op.Kind == simulated.OpRegistrySet && op.Phase == simulated.Before && strings.Contains(op.Target, "refused") {
			return simulated.Fail(fault.ErrPermission)
		}
		return simulated.Continue()
	})
	for _, value := range []uint32{2, 3} {
		if _, err := lab.setup(with(value), plan.Options{}); !errors.Is(err, fault.ErrPermission) {
			t.Errorf("setup with %d: %v", value, err)
		}
	}
	lab.undo()
	if diff := cmp.Diff(before, lab.registry()); diff != "" {
		t.Errorf("before the setup and after its undo:\n%s", diff)
	}

	refuses = false
	for _, value := range []uint32{1, 2} {
		if _, err := lab.setup(with(value), plan.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	lab.set(hnsState, platform.RegistryValue{Name: odd.Name, Type: platform.RegistryDWord, Integer: 1})
	lab.undo()
	if is := lab.registry()[hnsState+`\`+odd.Name]; is.Integer != 1 {
		t.Errorf("a value that was changed since is %+v", is)
	}
}

func TestExclusionsThatDefenderIgnores(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	lab.addDefender()
	lab.machine.ProtectDefender()
	_, err := lab.setup(v1alpha1.Setup{Defender: hardened().Defender}, plan.Options{})
	if err == nil || !strings.Contains(err.Error(), "tamper protection") {
		t.Errorf("the error is %v", err)
	}
	if results := lab.undo(); len(results) != 1 {
		t.Errorf("undone: %+v", results)
	}
}

// An undo that tamper protection ignores fails, and keeps the record for a later one.
func TestAnUndoThatDefenderIgnores(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	lab.addDefender()
	if _, err := lab.setup(v1alpha1.Setup{Defender: hardened().Defender}, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	lab.machine.ProtectDefender()
	for range 2 {
		steps, err := setup.Undo(t.Context(), lab.node)
		if err != nil || len(steps) != 1 {
			t.Fatalf("%v, %d steps", err, len(steps))
		}
		_, err = plan.Run(t.Context(), steps, plan.Options{Machine: lab.node}, ui.Discard{})
		if err == nil || !strings.Contains(err.Error(), "tamper protection") || !strings.Contains(err.Error(), containerd) {
			t.Errorf("the error is %v", err)
		}
	}
}
