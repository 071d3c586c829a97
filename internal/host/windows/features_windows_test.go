package windows

import (
	"context"
	"errors"
	"testing"

	"github.com/swdt-dev/swdt/internal/host"
)

// silent is a program that does nothing and says nothing, as Wine's own dism.exe.
type silent struct{ host.Processes }

func (silent) Run(context.Context, host.Command) (int, error) { return 0, nil }

// That is a machine which cannot tell, and not one without the feature.
func TestFeaturesThatCannotBeTold(t *testing.T) {
	features := features{dism: systemFile("dism.exe"), processes: silent{}}
	if state, err := features.State(t.Context(), "Containers"); !errors.Is(err, host.ErrNotSupported) {
		t.Errorf("got %q, %v", state, err)
	}
}

// The dism.exe of our prefixes keeps features, until the next boot as pending.
func TestFeaturesUnderWine(t *testing.T) {
	if simulated() != "wine" {
		t.Skip("on Windows the contract suite does this")
	}
	features := New().Features
	if _, err := features.State(t.Context(), "swdt-No-Such-Feature"); !errors.Is(err, host.ErrNotExist) {
		t.Errorf("an unknown feature: %v", err)
	}
	if state, err := features.State(t.Context(), "Containers"); err != nil || state != host.FeatureDisabled {
		t.Errorf("at first: %s, %v", state, err)
	}
	reboot, err := features.Enable(t.Context(), "Containers")
	if err != nil || !reboot {
		t.Errorf("enable: %t, %v", reboot, err)
	}
	if state, err := features.State(t.Context(), "Containers"); err != nil || state != host.FeatureEnablePending {
		t.Errorf("then: %s, %v", state, err)
	}
}
