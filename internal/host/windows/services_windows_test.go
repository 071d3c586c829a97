package windows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
)

func scm() host.Services { return New().Services }

// install registers the test binary as a service that is deleted, and its
// process killed, when the test ends.
func install(t *testing.T, name string, b behaviour, dependencies ...string) {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("%s service %s %s", syscall.EscapeArg(executable(t)), name, syscall.EscapeArg(string(text)))
	err = scm().Create(t.Context(), host.ServiceConfig{
		Name: name, DisplayName: name + " for tests", CommandLine: line, Dependencies: dependencies,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, name) })
}

func remove(t *testing.T, name string) {
	ctx := context.Background()
	s := scm()
	status, err := s.Status(ctx, name)
	if errors.Is(err, host.ErrNoService) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	if status.PID != 0 {
		if handle, err := (processes{}).Open(status.PID); err == nil {
			if err := errors.Join(handle.Kill(), handle.Wait(ctx), handle.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	if err := s.Delete(ctx, name); err != nil && !errors.Is(err, host.ErrServiceDeleting) {
		t.Error(err)
	}
}

// await polls until the service is in the state, for which there is no event
// under Wine.
func await(t *testing.T, name string, state host.ServiceState) host.ServiceStatus {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		status, err := scm().Status(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if status.State == state {
			return status
		}
		if time.Now().After(deadline) {
			t.Fatalf("service %s is %s, want %s", name, status.State, state)
		}
		<-tick.C
	}
}

func TestServiceLife(t *testing.T) {
	s, ctx := scm(), t.Context()
	record := filepath.Join(tempFolder(t), "starts")
	install(t, "swdt-life", behaviour{Record: record})

	if status := await(t, "SWDT-LIFE", host.Stopped); status.PID != 0 || status.DisplayName != "swdt-life for tests" {
		t.Errorf("before the start: %+v", status)
	}
	if err := s.Stop(ctx, "swdt-life"); !errors.Is(err, host.ErrServiceStopped) {
		t.Errorf("stop of a stopped service: %v", err)
	}
	if err := s.Start(ctx, "swdt-life", "one", "two words"); err != nil {
		t.Fatal(err)
	}
	status := await(t, "swdt-life", host.Running)
	if status.PID == 0 || status.SharedProcess {
		t.Errorf("running: %+v", status)
	}
	if err := s.Start(ctx, "swdt-life"); !errors.Is(err, host.ErrServiceRunning) {
		t.Errorf("start of a running service: %v", err)
	}
	handle, err := processes{}.Open(status.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	if err := s.Stop(ctx, "swdt-life"); err != nil {
		t.Fatal(err)
	}
	if err := handle.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, "swdt-life", host.Stopped)
	content, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(content)), `["swdt-life","one","two words"]`; got != want {
		t.Errorf("the service was started with %s, want %s", got, want)
	}
}

func TestServiceFailures(t *testing.T) {
	s, ctx := scm(), t.Context()
	install(t, "swdt-crash", behaviour{CrashAtStart: true})
	if err := s.Start(ctx, "swdt-crash"); !errors.Is(err, host.ErrStartFailed) {
		t.Errorf("start of a service that crashes: %v", err)
	}
	await(t, "swdt-crash", host.Stopped)

	if err := s.Configure(ctx, host.ServiceConfig{Name: "swdt-crash", CommandLine: `C:\no\such.exe`}); err != nil {
		t.Fatal(err)
	}
	err := s.Start(ctx, "swdt-crash")
	if !errors.Is(err, host.ErrStartFailed) || errors.Is(err, host.ErrNotExist) {
		t.Errorf("start of a service without an executable: %v", err)
	}
	if err := s.Configure(ctx, host.ServiceConfig{Name: "swdt-crash", StartType: host.StartDisabled}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(ctx, "swdt-crash"); !errors.Is(err, host.ErrServiceDisabled) {
		t.Errorf("start of a disabled service: %v", err)
	}
	if _, err := s.Status(ctx, "swdt-none"); !errors.Is(err, host.ErrNoService) {
		t.Errorf("status of no service: %v", err)
	}
	if err := s.Create(ctx, host.ServiceConfig{Name: "swdt-crash", CommandLine: "x"}); !errors.Is(err, host.ErrServiceExists) {
		t.Errorf("second create: %v", err)
	}
}

func TestServiceExitsByItself(t *testing.T) {
	install(t, "swdt-exit", behaviour{ExitAfter: 300 * time.Millisecond})
	if err := scm().Start(t.Context(), "swdt-exit"); err != nil {
		t.Fatal(err)
	}
	await(t, "swdt-exit", host.Running)
	status := await(t, "swdt-exit", host.Stopped)
	t.Logf("exit codes %d, %d", status.ExitCode, status.SpecificExitCode)
	if status.PID != 0 {
		t.Errorf("PID %d of a process that has ended", status.PID)
	}
}

func TestServiceThatHangsOnStop(t *testing.T) {
	s, ctx := scm(), t.Context()
	install(t, "swdt-hang", behaviour{HangOnStop: true})
	if err := s.Start(ctx, "swdt-hang"); err != nil {
		t.Fatal(err)
	}
	await(t, "swdt-hang", host.Running)
	if err := s.Stop(ctx, "swdt-hang"); err != nil {
		t.Fatal(err)
	}
	status := await(t, "swdt-hang", host.StopPending)
	if err := s.Stop(ctx, "swdt-hang"); err != nil {
		t.Errorf("a second stop on the way: %v", err)
	}
	handle, err := processes{}.Open(status.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	if err := errors.Join(handle.Kill(), handle.Wait(ctx)); err != nil {
		t.Fatal(err)
	}
	await(t, "swdt-hang", host.Stopped)
}

func TestServiceDependents(t *testing.T) {
	s, ctx := scm(), t.Context()
	install(t, "swdt-base", behaviour{})
	install(t, "swdt-middle", behaviour{}, "swdt-base")
	install(t, "swdt-top", behaviour{}, "swdt-middle")
	direct, err := s.Dependents(ctx, "SWDT-base")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(direct, []string{"swdt-middle"}) {
		t.Errorf("direct dependents of the base: %v", direct)
	}
	for _, name := range []string{"swdt-base", "swdt-middle"} {
		if err := s.Start(ctx, name); err != nil {
			t.Fatal(err)
		}
		await(t, name, host.Running)
	}
	if err := s.Stop(ctx, "swdt-base"); !errors.Is(err, host.ErrDependents) {
		t.Errorf("stop under a running dependent: %v", err)
	}
	for _, name := range []string{"swdt-middle", "swdt-base"} {
		if err := s.Stop(ctx, name); err != nil {
			t.Fatal(err)
		}
		await(t, name, host.Stopped)
	}
	// The start of one starts what it needs.
	if err := s.Start(ctx, "swdt-top"); err != nil {
		t.Fatal(err)
	}
	await(t, "swdt-base", host.Running)
	for _, name := range []string{"swdt-top", "swdt-middle", "swdt-base"} {
		if err := s.Stop(ctx, name); err != nil {
			t.Fatal(err)
		}
		await(t, name, host.Stopped)
	}
}

func TestServiceConfig(t *testing.T) {
	s, ctx := scm(), t.Context()
	want := host.ServiceConfig{
		Name: "swdt-config", DisplayName: "A name", Description: "What it is for.",
		CommandLine: `"C:\Program Files\x\x.exe" --flag "a b"`, StartType: host.StartAuto,
		Dependencies: []string{"RpcSs", "EventLog"},
		Recovery:     &host.Recovery{Restarts: []time.Duration{time.Second, 2 * time.Second}, Reset: time.Hour},
	}
	if err := s.Create(ctx, want); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, "swdt-config") })
	got, err := s.Config(ctx, "swdt-config")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v recovery %+v", got, got.Recovery)
	if got.CommandLine != want.CommandLine || got.StartType != want.StartType || got.DisplayName != want.DisplayName ||
		!slices.Equal(got.Dependencies, want.Dependencies) || got.Account != "" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	err = s.Configure(ctx, host.ServiceConfig{Name: "swdt-config", StartType: host.StartManual, Dependencies: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	got, err = s.Config(ctx, "swdt-config")
	if err != nil {
		t.Fatal(err)
	}
	if got.CommandLine != want.CommandLine || got.StartType != host.StartManual || len(got.Dependencies) != 0 {
		t.Errorf("after the change: %+v", got)
	}
}

func TestServiceList(t *testing.T) {
	install(t, "swdt-listed", behaviour{})
	list, err := scm().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list, func(s host.ServiceStatus) bool { return s.Name == "swdt-listed" && s.State == host.Stopped }) {
		t.Errorf("swdt-listed is not in the list of %d", len(list))
	}
	if !slices.IsSortedFunc(list, func(a, b host.ServiceStatus) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	}) {
		t.Error("the list is not sorted")
	}
}
