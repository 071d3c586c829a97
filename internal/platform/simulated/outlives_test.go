package simulated_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// A wrapper's program is in no job of its wrapper, so it outlives a killed wrapper; nssm ends its program at a stop.
func TestAProgramOutlivesItsKilledWrapper(t *testing.T) {
	const nssm, program = `C:\k\nssm.exe`, `C:\k\kube-proxy.exe`
	for name, c := range map[string]struct {
		end  func(*testing.T, *simulated.Machine, *platform.Platform)
		runs bool
	}{
		"killed": {func(_ *testing.T, m *simulated.Machine, _ *platform.Platform) { m.Kill("nssm.exe") }, true},
		"stopped": {func(t *testing.T, _ *simulated.Machine, p *platform.Platform) {
			if err := p.Services.Stop(t.Context(), "proxy"); err != nil {
				t.Error(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
				m.WriteFile(nssm, simulated.Binary(simulated.BinarySpec{Name: "nssm"}))
				m.WriteFile(program, simulated.Binary(simulated.BinarySpec{Name: "kube-proxy"}))
				p := m.Process("test")
				if err := p.Registry.Set(`HKLM\SYSTEM\CurrentControlSet\Services\proxy\Parameters`, platform.RegistryValue{
					Name: "Application", Type: platform.RegistryExpandString, String: program}); err != nil {
					t.Fatal(err)
				}
				if err := p.Services.Create(t.Context(), platform.ServiceConfig{Name: "proxy", CommandLine: nssm}); err != nil {
					t.Fatal(err)
				}
				if err := p.Services.Start(t.Context(), "proxy"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second) // nssm's own delay
				c.end(t, m, p)
				time.Sleep(2 * time.Second)
				processes, err := p.Processes.List(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				runs := slices.ContainsFunc(processes, func(p platform.Process) bool { return p.Name == "kube-proxy.exe" })
				if runs != c.runs {
					t.Errorf("the program runs: %v, want %v", runs, c.runs)
				}
			})
		})
	}
}

// CreateService and ChangeServiceConfig fail with 1078 for a display name that is the name or the display name of
// another service.
func TestADisplayNameIsThatOfOneService(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	services := m.Process("test").Services
	create := func(name, shown string) error {
		return services.Create(t.Context(), platform.ServiceConfig{Name: name, DisplayName: shown, CommandLine: `C:\k\x.exe`})
	}
	for _, made := range [][2]string{{"one", "Shown"}, {"two", ""}} {
		if err := create(made[0], made[1]); err != nil {
			t.Fatal(err)
		}
	}
	for what, err := range map[string]error{
		"another's display name": create("three", "shown"),
		"another's name":         create("three", "TWO"),
		"configured":             services.Configure(t.Context(), platform.ServiceConfig{Name: "two", DisplayName: "SHOWN"}),
	} {
		if !errors.Is(err, fault.ErrServiceExists) {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	if err := services.Configure(t.Context(), platform.ServiceConfig{Name: "one", DisplayName: "shown"}); err != nil {
		t.Errorf("its own display name: %v", err)
	}
}
