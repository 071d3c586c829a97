package platformtest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// serviceName returns a name that no service on the machine has.
func serviceName(t *testing.T, suffix string) string {
	return "swdt-" + strings.ToLower(base(t.Name())) + suffix
}

func (f Fixture) install(t *testing.T, suffix string, b Behaviour, dependencies ...string) string {
	t.Helper()
	name := serviceName(t, suffix)
	f.InstallService(t, platform.ServiceConfig{Name: name, Dependencies: dependencies}, b)
	return name
}

func (f Fixture) status(t *testing.T, name string) platform.ServiceStatus {
	t.Helper()
	status, err := f.Platform.Services.Status(t.Context(), name)
	check(t, err)
	return status
}

func (f Fixture) await(t *testing.T, name string, state platform.ServiceState) platform.ServiceStatus {
	t.Helper()
	eventually(t, name+" is "+string(state), func() bool { return f.status(t, name).State == state })
	return f.status(t, name)
}

func testServices(t *testing.T, fixture func(*testing.T) Fixture) {
	tests := map[string]func(*testing.T, Fixture){
		"Unknown": serviceUnknown, "Lifecycle": serviceLifecycle, "SlowStart": serviceSlowStart,
		"CreateAndConfigure": serviceConfigure,
		"Arguments":          serviceArguments, "Disabled": serviceDisabled, "CrashAtStart": serviceCrashAtStart,
		"MissingExecutable": serviceMissingExecutable, "Crash": serviceCrash, "HangOnStop": serviceHangOnStop,
		"SpecificExitCode": serviceSpecificExit, "Dependents": serviceDependents, "Dependencies": serviceDependencies,
		"DeleteRunning": serviceDeleteRunning, "Recovery": serviceRecovery, "Restart": serviceRestart,
		"RestartForEver": serviceRestartForEver, "OwnEnvironment": serviceEnvironment,
		"ExecutableIsLocked": serviceExecutableIsLocked, "InTheRegistry": serviceInTheRegistry,
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) { tests[name](t, fixture(t)) })
	}
}

// serviceInTheRegistry finds the registration of a service in its key, with the numbers of winnt.h.
func serviceInTheRegistry(t *testing.T, f Fixture) {
	name := f.install(t, "", Behaviour{})
	check(t, f.Platform.Services.Configure(t.Context(), platform.ServiceConfig{Name: name, StartType: platform.StartDisabled}))
	config, err := f.Platform.Services.Config(t.Context(), name)
	check(t, err)
	key := `HKLM\SYSTEM\CurrentControlSet\Services\` + name
	for value, want := range map[string]uint64{"Type": 0x10, "Start": 4} {
		if got, err := f.Platform.Registry.Get(key, value); err != nil || got.Type != platform.RegistryDWord || got.Integer != want {
			t.Errorf("%s is %+v, want %d: %v", value, got, want, err)
		}
	}
	if image, err := f.Platform.Registry.Get(key, "ImagePath"); err != nil || image.String != config.CommandLine {
		t.Errorf("ImagePath is %q, want %q: %v", image.String, config.CommandLine, err)
	}
	_, names, err := f.Platform.Registry.List(`HKLM\SYSTEM\CurrentControlSet\Services`)
	check(t, err)
	if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
		t.Errorf("the keys of the services have no %s", name)
	}
}

func serviceUnknown(t *testing.T, f Fixture) {
	ctx, s, name := t.Context(), f.Platform.Services, serviceName(t, "")
	_, status := s.Status(ctx, name)
	_, config := s.Config(ctx, name)
	_, dependents := s.Dependents(ctx, name)
	for what, err := range map[string]error{
		"status": status, "config": config, "dependents": dependents, "start": s.Start(ctx, name),
		"stop":   s.Stop(ctx, name),
		"delete": s.Delete(ctx, name), "configure": s.Configure(ctx,
			platform.ServiceConfig{Name: name, StartType: platform.StartAuto}),
	} {
		if !errors.Is(err, fault.ErrNoService) {
			t.Errorf("%s: the error is %v, want %v", what, err, fault.ErrNoService)
		}
	}
}

func serviceLifecycle(t *testing.T, f Fixture) {
	ctx, s := t.Context(), f.Platform.Services
	name := f.install(t, "", Behaviour{})
	switch status := f.status(t, name); {
	case status.State != platform.Stopped:
		t.Errorf("before: status.State is %v, want %v", status.State, platform.Stopped)
	case status.PID != 0:
		t.Errorf("before: status.PID is %v, want 0", status.PID)
	case !strings.EqualFold(status.Name, name):
		t.Errorf("before: status.Name is %q, want %q", status.Name, name)
	}
	if err := s.Stop(ctx, name); !errors.Is(err, fault.ErrServiceStopped) {
		t.Errorf("stop of a stopped service: %v", err)
	}
	check(t, s.Start(ctx, strings.ToUpper(name)))
	status := f.await(t, name, platform.Running)
	if status.PID == 0 || status.SharedProcess {
		t.Errorf("running: %+v", status)
	}
	if err := s.Start(ctx, name); !errors.Is(err, fault.ErrServiceRunning) {
		t.Errorf("start of a running service: %v", err)
	}
	handle, err := f.Platform.Processes.Open(status.PID)
	check(t, err)
	defer handle.Close()
	list, err := s.List(ctx)
	check(t, err)
	if !slices.ContainsFunc(list, func(l platform.ServiceStatus) bool {
		return strings.EqualFold(l.Name, name) && l.State == platform.Running && l.PID == status.PID
	}) {
		t.Error("it is not listed as running")
	}
	if !slices.IsSortedFunc(list, func(a, b platform.ServiceStatus) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	}) {
		t.Error("the list is not sorted")
	}
	check(t, s.Stop(ctx, name))
	if status := f.await(t, name, platform.Stopped); status.PID != 0 || status.ExitCode != 0 {
		t.Errorf("after: %+v", status)
	}
	expectEnded(t, handle)
	check(t, s.Start(ctx, name))
	f.await(t, name, platform.Running)
}

// serviceSlowStart checks that Start sends the request and does not wait until the service
// runs.
func serviceSlowStart(t *testing.T, f Fixture) {
	name := f.install(t, "", Behaviour{SlowStart: 2 * time.Second})
	check(t, f.Platform.Services.Start(t.Context(), name))
	status := f.status(t, name)
	if status.State != platform.StartPending || status.PID == 0 {
		t.Errorf("just asked for: %+v", status)
	}
	if err := f.Platform.Services.Start(t.Context(), name); !errors.Is(err, fault.ErrServiceRunning) {
		t.Errorf("start again: %v", err)
	}
	if err := f.Platform.Services.Stop(t.Context(), name); err == nil {
		t.Error("a starting service took a stop")
	}
	f.await(t, name, platform.Running)
}

func serviceConfigure(t *testing.T, f Fixture) {
	ctx, s := t.Context(), f.Platform.Services
	other := f.install(t, "-other", Behaviour{})
	name := serviceName(t, "")
	f.InstallService(t, platform.ServiceConfig{
		Name: name, DisplayName: "Shown Name", StartType: platform.StartManual, Dependencies: []string{other},
	}, Behaviour{})
	before, err := s.Config(ctx, name)
	check(t, err)
	switch {
	case before.DisplayName != "Shown Name":
		t.Errorf("created: before.DisplayName is %q, want %q", before.DisplayName, "Shown Name")
	case before.StartType != platform.StartManual:
		t.Errorf("created: before.StartType is %v, want %v", before.StartType, platform.StartManual)
	case before.CommandLine == "":
		t.Error("created: before.CommandLine is empty")
	case !slices.EqualFunc(before.Dependencies, []string{other}, strings.EqualFold):
		t.Errorf("created: the dependencies are %v, want %s", before.Dependencies, other)
	}
	if err := s.Create(ctx, platform.ServiceConfig{Name: strings.ToUpper(name),
		CommandLine: before.CommandLine}); !errors.Is(err, fault.ErrServiceExists) {
		t.Errorf("created twice: %v", err)
	}
	// Wine 8 does so too, but lets a service have the name of another one as display name.
	if err := s.Create(ctx, platform.ServiceConfig{Name: name + "-twin", DisplayName: "sHown Name",
		CommandLine: before.CommandLine}); !errors.Is(err, fault.ErrServiceExists) {
		t.Errorf("created with another service's display name: %v", err)
	}
	check(t, s.Configure(ctx, platform.ServiceConfig{Name: name, StartType: platform.StartAuto}))
	after, err := s.Config(ctx, name)
	check(t, err)
	want := before
	want.StartType = platform.StartAuto
	if !reflect.DeepEqual(after, want) {
		t.Errorf("only the start type was to change:\nwant %+v\ngot  %+v", want, after)
	}
	line := before.CommandLine + ` "more args"`
	check(t, s.Configure(ctx, platform.ServiceConfig{Name: name, CommandLine: line, DisplayName: "Other"}))
	switch after, err := s.Config(ctx, name); {
	case err != nil:
		t.Error(err)
	case after.CommandLine != line:
		t.Errorf("after.CommandLine is %v, want %v", after.CommandLine, line)
	case after.DisplayName != "Other":
		t.Errorf("after.DisplayName is %q, want %q", after.DisplayName, "Other")
	case after.StartType != platform.StartAuto:
		t.Errorf("after.StartType is %v, want %v", after.StartType, platform.StartAuto)
	}
}

func serviceArguments(t *testing.T, f Fixture) {
	record := f.path("starts")
	name := f.install(t, "", Behaviour{Record: record})
	check(t, f.Platform.Services.Start(t.Context(), name, "one", "two words"))
	f.await(t, name, platform.Running)
	var args []string
	check(t, json.Unmarshal([]byte(f.read(t, record)), &args))
	switch {
	case len(args) != 3:
		t.Errorf("args has %d elements, want 3: %v", len(args), args)
	case !slices.Equal(args[1:], []string{"one", "two words"}):
		t.Errorf("args[1:] is %v, want %v", args[1:], []string{"one", "two words"})
	}
}

func serviceDisabled(t *testing.T, f Fixture) {
	name := f.install(t, "", Behaviour{})
	check(t, f.Platform.Services.Configure(t.Context(),
		platform.ServiceConfig{Name: name, StartType: platform.StartDisabled}))
	if err := f.Platform.Services.Start(t.Context(), name); !errors.Is(err, fault.ErrServiceDisabled) {
		t.Errorf("the error is %v, want %v", err, fault.ErrServiceDisabled)
	}
}

func serviceCrashAtStart(t *testing.T, f Fixture) {
	name := f.install(t, "", Behaviour{CrashAtStart: true})
	err := f.Platform.Services.Start(t.Context(), name)
	if !errors.Is(err, fault.ErrStartFailed) {
		t.Errorf("the error is %v, want %v", err, fault.ErrStartFailed)
	}
	if status := f.await(t, name, platform.Stopped); status.PID != 0 {
		t.Errorf("after: %+v", status)
	}
}

func serviceMissingExecutable(t *testing.T, f Fixture) {
	name := f.install(t, "", Behaviour{})
	check(t, f.Platform.Services.Configure(t.Context(),
		platform.ServiceConfig{Name: name, CommandLine: f.path("missing.exe")}))
	if err := f.Platform.Services.Start(t.Context(), name); !errors.Is(err, fault.ErrStartFailed) {
		t.Errorf("the error is %v, want %v", err, fault.ErrStartFailed)
	}
	f.await(t, name, platform.Stopped)
}

// serviceCrash checks that the exit code is 1067 if a process ends without reporting its end to the
// SCM.
func serviceCrash(t *testing.T, f Fixture) {
	name := f.install(t, "", Behaviour{ExitAfter: 50 * time.Millisecond})
	check(t, f.Platform.Services.Start(t.Context(), name))
	switch status := f.await(t, name, platform.Stopped); {
	case status.PID != 0:
		t.Errorf("status.PID is %v, want 0", status.PID)
	case status.ExitCode != 1067:
		t.Errorf("status.ExitCode is %v, want 1067", status.ExitCode)
	}
}

func serviceHangOnStop(t *testing.T, f Fixture) {
	name := f.install(t, "", Behaviour{HangOnStop: true})
	check(t, f.Platform.Services.Start(t.Context(), name))
	pid := f.await(t, name, platform.Running).PID
	handle, err := f.Platform.Processes.Open(pid)
	check(t, err)
	defer handle.Close()
	check(t, f.Platform.Services.Stop(t.Context(), name))
	if status := f.await(t, name, platform.StopPending); status.PID != pid {
		t.Errorf("stopping: %+v", status)
	}
	check(t, f.Platform.Services.Stop(t.Context(), name)) // the service is stopping already
	check(t, handle.Kill())
	expectEnded(t, handle)
	if status := f.await(t, name, platform.Stopped); status.PID != 0 {
		t.Errorf("killed: %+v", status)
	}
}

func serviceSpecificExit(t *testing.T, f Fixture) {
	need(t, f.Has.SpecificExit, "service-specific exit codes")
	name := f.install(t, "", Behaviour{ExitCode: 42})
	check(t, f.Platform.Services.Start(t.Context(), name))
	f.await(t, name, platform.Running)
	check(t, f.Platform.Services.Stop(t.Context(), name))
	switch status := f.await(t, name, platform.Stopped); {
	case status.ExitCode != 1066:
		t.Errorf("status.ExitCode is %v, want 1066", status.ExitCode)
	case status.SpecificExitCode != 42:
		t.Errorf("status.SpecificExitCode is %v, want 42", status.SpecificExitCode)
	}
}

func serviceDependents(t *testing.T, f Fixture) {
	ctx, s := t.Context(), f.Platform.Services
	below := f.install(t, "-below", Behaviour{})
	middle := f.install(t, "-middle", Behaviour{}, below)
	above := f.install(t, "-above", Behaviour{}, middle)
	for _, name := range []string{below, middle, above} {
		check(t, s.Start(ctx, name))
		f.await(t, name, platform.Running)
	}
	if names, err := s.Dependents(ctx, below); err != nil || !slices.EqualFunc(names, []string{middle},
		strings.EqualFold) {
		t.Errorf("%s needs %s directly, got %v, %v", middle, below, names, err)
	}
	if err := s.Stop(ctx, below); !errors.Is(err, fault.ErrDependents) {
		t.Errorf("stopped under a running dependent: %v", err)
	}
	for _, name := range []string{above, middle, below} {
		check(t, s.Stop(ctx, name))
		f.await(t, name, platform.Stopped)
	}
	if names, err := s.Dependents(ctx, below); err != nil || !slices.EqualFunc(names, []string{middle},
		strings.EqualFold) {
		t.Errorf("dependents in any state: %v, %v", names, err)
	}
	if names, err := s.Dependents(ctx, above); err != nil || len(names) != 0 {
		t.Errorf("%s has no dependents, got %v, %v", above, names, err)
	}
}

func serviceDependencies(t *testing.T, f Fixture) {
	need(t, f.Has.StartDependencies, "an SCM that starts dependencies")
	below := f.install(t, "-below", Behaviour{SlowStart: 100 * time.Millisecond})
	above := f.install(t, "-above", Behaviour{}, below)
	check(t, f.Platform.Services.Start(t.Context(), above))
	f.await(t, above, platform.Running)
	if status := f.status(t, below); status.State != platform.Running {
		t.Errorf("what it needs: %+v", status)
	}
	broken := f.install(t, "-broken", Behaviour{CrashAtStart: true})
	needy := f.install(t, "-needy", Behaviour{}, broken)
	if err := f.Platform.Services.Start(t.Context(), needy); !errors.Is(err, fault.ErrStartFailed) {
		t.Errorf("with a broken dependency: %v", err)
	}
	f.await(t, needy, platform.Stopped)
}

func serviceDeleteRunning(t *testing.T, f Fixture) {
	ctx, s := t.Context(), f.Platform.Services
	name := f.install(t, "", Behaviour{})
	check(t, s.Start(ctx, name))
	f.await(t, name, platform.Running)
	config, err := s.Config(ctx, name)
	check(t, err)
	check(t, s.Flush(ctx))
	check(t, s.Delete(ctx, name))
	if f.Has.DeletePending {
		if status := f.status(t, name); status.State != platform.Running {
			t.Errorf("marked for deletion: %+v", status)
		}
		err := s.Create(ctx, platform.ServiceConfig{Name: name, CommandLine: config.CommandLine})
		if !errors.Is(err, fault.ErrServiceDeleting) {
			t.Errorf("create meanwhile: %v", err)
		}
		check(t, s.Stop(ctx, name))
	}
	eventually(t, "the service is gone", func() bool {
		_, err := s.Status(context.Background(), name)
		return errors.Is(err, fault.ErrNoService)
	})
}

func serviceRecovery(t *testing.T, f Fixture) {
	need(t, f.Has.Recovery, "recovery actions that can be read back")
	restarts := []time.Duration{time.Second, 5 * time.Second}
	for what, want := range map[string]platform.Recovery{
		"that end":          {Restarts: restarts, Reset: time.Hour},
		"that repeat":       {Restarts: restarts, RepeatLast: true, Reset: time.Hour},
		"with the flag":     {Restarts: restarts, RepeatLast: true, OnErrorExit: true},
		"of no kind at all": {},
		"that run a command": {Restarts: restarts[:1], Reset: time.Hour, Actions: []platform.RecoveryAction{
			{Kind: platform.RecoverByRestart, After: restarts[0]}, {Kind: platform.RecoverByCommand, After: time.Second}}},
	} {
		t.Run(what, func(t *testing.T) {
			name := serviceName(t, "")
			f.InstallService(t, platform.ServiceConfig{Name: name, Recovery: &want}, Behaviour{})
			config, err := f.Platform.Services.Config(t.Context(), name)
			switch {
			case err != nil:
				t.Error(err)
			case !reflect.DeepEqual(config.Recovery, &want):
				t.Errorf("config.Recovery is %v, want %v", config.Recovery, want)
			}
		})
	}
}

func serviceRestart(t *testing.T, f Fixture) {
	need(t, f.Has.Restarts, "recovery actions that are acted on")
	name, record := serviceName(t, ""), f.path("starts")
	delay := 20 * time.Millisecond
	f.InstallService(t, platform.ServiceConfig{
		Name: name, Recovery: &platform.Recovery{Restarts: []time.Duration{delay, delay}, Reset: time.Hour},
	}, Behaviour{ExitAfter: 30 * time.Millisecond, Record: record})
	check(t, f.Platform.Services.Start(t.Context(), name))
	eventually(t, "it has been started three times", func() bool { return starts(t, f, record) == 3 })
	f.await(t, name, platform.Stopped)
}

func serviceRestartForEver(t *testing.T, f Fixture) {
	need(t, f.Has.Restarts, "recovery actions that are acted on")
	name, record := serviceName(t, ""), f.path("starts")
	f.InstallService(t, platform.ServiceConfig{
		Name: name, Recovery: &platform.Recovery{Restarts: []time.Duration{20 * time.Millisecond}, RepeatLast: true,
			Reset: time.Hour},
	}, Behaviour{ExitAfter: 30 * time.Millisecond, Record: record})
	check(t, f.Platform.Services.Start(t.Context(), name))
	eventually(t, "it has been started five times", func() bool { return starts(t, f, record) >= 5 })
	check(t, f.Platform.Services.Delete(t.Context(), name)) // a deleted service is not started again
}

// starts returns how often a service has recorded its start.
func starts(t *testing.T, f Fixture, record string) int {
	if _, err := f.Platform.Files.Stat(record); err != nil {
		return 0
	}
	return strings.Count(f.read(t, record), "\n")
}

func serviceExecutableIsLocked(t *testing.T, f Fixture) {
	name := f.install(t, "", Behaviour{})
	check(t, f.Platform.Services.Start(t.Context(), name))
	pid := f.await(t, name, platform.Running).PID
	list, err := f.Platform.Processes.List(t.Context())
	check(t, err)
	i := slices.IndexFunc(list, func(p platform.Process) bool { return p.PID == pid })
	if i < 0 {
		t.Fatalf("process %d is not listed", pid)
	}
	err = f.Platform.Files.Remove(list[i].Image)
	if !errors.Is(err, fault.ErrPermission) && !errors.Is(err, fault.ErrInUse) {
		t.Errorf("remove of a running service's executable %s: %v", list[i].Image, err)
	}
}
