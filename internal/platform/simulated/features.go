package simulated

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// feature is a Windows optional feature. The states and the rules are those of DISM ("DISM Operating System Package
// Servicing Command-Line Options"): /Enable-Feature with /All enables the parents too, and a change that waits for a restart
// is "Enable Pending" or "Disable Pending", with exit code 3010. That a disabled parent disables its children is a guess:
// docs/guesses.md.
type feature struct {
	name   string
	state  platform.FeatureState
	reboot bool     // whether a change takes effect only after a restart
	needs  []string // features that are enabled together with this one
}

// featuresView implements platform.Features for one process.
type featuresView struct{ p *process }

func (m *Machine) feature(name string) (*feature, error) {
	f := m.features[fold(name)]
	if f == nil {
		return nil, fmt.Errorf("find Windows feature %s: %w", name, fault.ErrNotExist)
	}
	return f, nil
}

func (v featuresView) State(ctx context.Context, name string) (platform.FeatureState, error) {
	if err := v.p.checkContext(ctx); err != nil {
		return "", err
	}
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	f, err := v.p.m.feature(name)
	if err != nil {
		return "", err
	}
	return f.state, nil
}

func (v featuresView) Enable(ctx context.Context, name string) (reboot bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	err = v.p.do(OpFeatureEnable, name, func() error {
		f, err := v.p.m.feature(name)
		if err == nil {
			reboot = v.p.m.enable(f)
		}
		return err
	})
	return reboot, err
}

func (v featuresView) Disable(ctx context.Context, name string) (reboot bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	err = v.p.do(OpFeatureDisable, name, func() error {
		f, err := v.p.m.feature(name)
		if err == nil {
			reboot = v.p.m.disable(f)
		}
		return err
	})
	return reboot, err
}

func (m *Machine) enable(f *feature) (reboot bool) {
	for _, name := range f.needs {
		if needed := m.features[fold(name)]; needed != nil && m.enable(needed) {
			reboot = true
		}
	}
	switch f.state {
	case platform.FeatureDisabled:
		f.state = platform.FeatureEnabled
		if f.reboot {
			f.state = platform.FeatureEnablePending
		}
	case platform.FeatureDisablePending:
		f.state = platform.FeatureEnabled
	}
	m.noteReboot()
	return reboot || f.state == platform.FeatureEnablePending
}

func (m *Machine) disable(f *feature) (reboot bool) {
	for _, other := range m.features {
		if slices.ContainsFunc(other.needs, func(n string) bool { return strings.EqualFold(n, f.name) }) &&
			m.disable(other) {
			reboot = true
		}
	}
	switch f.state {
	case platform.FeatureEnabled:
		f.state = platform.FeatureDisabled
		if f.reboot {
			f.state = platform.FeatureDisablePending
		}
	case platform.FeatureEnablePending:
		f.state = platform.FeatureDisabled
	}
	m.noteReboot()
	return reboot || f.state == platform.FeatureDisablePending
}

// noteReboot sets the registry key by which Windows' servicing shows that it waits for a restart,
// or removes the key if no feature waits ("RebootPending" of Component Based Servicing; Get-PendingReboot of many projects,
// and internal/platform/windows, read it).
func (m *Machine) noteReboot() {
	for _, f := range m.features {
		if f.state == platform.FeatureEnablePending || f.state == platform.FeatureDisablePending {
			_ = m.registry.set(rebootPendingKey, platform.RegistryValue{Type: platform.RegistryString})
			return
		}
	}
	if k, err := m.registry.find(servicingKey); err == nil {
		delete(k.keys, fold("RebootPending"))
	}
}

// finishFeatures completes the pending changes of features, as Windows' servicing does at boot.
func (m *Machine) finishFeatures() {
	for _, f := range m.features {
		switch f.state {
		case platform.FeatureEnablePending:
			f.state = platform.FeatureEnabled
		case platform.FeatureDisablePending:
			f.state = platform.FeatureDisabled
		}
	}
	m.noteReboot()
}
