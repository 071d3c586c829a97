package windows

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func scm() platform.Services { return New().Services }

func remove(t *testing.T, name string) {
	ctx := context.Background()
	s := scm()
	status, err := s.Status(ctx, name)
	if errors.Is(err, fault.ErrNoService) {
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
	if err := s.Delete(ctx, name); err != nil && !errors.Is(err, fault.ErrServiceDeleting) {
		t.Error(err)
	}
}

func TestServiceConfig(t *testing.T) {
	s, ctx := scm(), t.Context()
	want := platform.ServiceConfig{
		Name: "swdt-config", DisplayName: "A name", Description: "What it is for.",
		CommandLine: `"C:\Program Files\x\x.exe" --flag "a b"`, StartType: platform.StartAuto,
		Dependencies: []string{"RpcSs", "EventLog"},
		Recovery:     &platform.Recovery{Restarts: []time.Duration{time.Second, 2 * time.Second}, Reset: time.Hour},
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
	switch {
	case got.CommandLine != want.CommandLine:
		t.Errorf("got.CommandLine is %v, want %v", got.CommandLine, want.CommandLine)
	case got.StartType != want.StartType:
		t.Errorf("got.StartType is %v, want %v", got.StartType, want.StartType)
	case got.DisplayName != want.DisplayName:
		t.Errorf("got.DisplayName is %v, want %v", got.DisplayName, want.DisplayName)
	case !slices.Equal(got.Dependencies, want.Dependencies):
		t.Errorf("got.Dependencies is %v, want %v", got.Dependencies, want.Dependencies)
	case got.Account != "":
		t.Errorf(`got.Account is %q, want ""`, got.Account)
	}
	err = s.Configure(ctx, platform.ServiceConfig{Name: "swdt-config", StartType: platform.StartManual,
		Dependencies: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	got, err = s.Config(ctx, "swdt-config")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case got.CommandLine != want.CommandLine:
		t.Errorf("after the change: got.CommandLine is %v, want %v", got.CommandLine, want.CommandLine)
	case got.StartType != platform.StartManual:
		t.Errorf("after the change: got.StartType is %v, want %v", got.StartType, platform.StartManual)
	case len(got.Dependencies) != 0:
		t.Errorf("after the change: got.Dependencies is %v, want it empty", got.Dependencies)
	}
}
