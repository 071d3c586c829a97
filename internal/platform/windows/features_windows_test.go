package windows

import (
	"context"
	"errors"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// silent is a program that does nothing and prints nothing, like Wine's own
// dism.exe.
type silent struct{ platform.Processes }

func (silent) Run(context.Context, platform.Command) (int, error) { return 0, nil }

// Such a machine cannot report features; that differs from a machine without
// the feature.
func TestFeaturesThatCannotBeTold(t *testing.T) {
	features := features{dism: systemFile("dism.exe"), processes: silent{}}
	if _, err := features.State(t.Context(), "Containers"); !errors.Is(err, fault.ErrNotSupported) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNotSupported)
	}
}

// The dism.exe of swdt's Wine prefixes keeps features, as pending until the
// next boot.
func TestFeaturesUnderWine(t *testing.T) {
	if simulated() != "wine" {
		t.Skip("on Windows the contract suite does this")
	}
	features := New().Features
	if _, err := features.State(t.Context(), "swdt-No-Such-Feature"); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("an unknown feature: %v", err)
	}
	if state, err := features.State(t.Context(), "Containers"); err != nil || state != platform.FeatureDisabled {
		t.Errorf("at first: %s, %v", state, err)
	}
	reboot, err := features.Enable(t.Context(), "Containers")
	if err != nil || !reboot {
		t.Errorf("enable: %t, %v", reboot, err)
	}
	if state, err := features.State(t.Context(), "Containers"); err != nil || state != platform.FeatureEnablePending {
		t.Errorf("then: %s, %v", state, err)
	}
}
