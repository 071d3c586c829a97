package simulated

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// exclusionsKey has the exclusions of Microsoft Defender: a key for each kind, in which each value's name is an
// exclusion and its data is 0.
const exclusionsKey = `HKLM\SOFTWARE\Microsoft\Windows Defender\Exclusions\`

// ProtectDefender makes Microsoft Defender ignore changes of its exclusions, as its tamper protection does
// (learn.microsoft.com/defender-endpoint/manage-tamper-protection-intune); the cmdlets report no error.
func (m *Machine) ProtectDefender() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tamperProtection = true
}

// setExclusion runs Add-MpPreference or Remove-MpPreference with one exclusion. Windows without Defender has no module
// with these cmdlets.
func (p *Process) setExclusion(cmdlet, rest string) error {
	if _, err := p.Platform.Services.Status(context.Background(), "WinDefend"); errors.Is(err, fault.ErrNoService) {
		return errors.New("The term '" + cmdlet + "' is not recognized as the name of a cmdlet, function, script file, or " +
			"operable program. Check the spelling of the name, or if a path was included, verify that the path is correct " +
			"and try again.")
	}
	parameter, exclusion, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kinds := map[string]string{"-exclusionpath": "Paths", "-exclusionprocess": "Processes"}
	kind, known := kinds[fold(parameter)]
	if !known {
		return fmt.Errorf("A parameter cannot be found that matches parameter name '%s'.", strings.TrimLeft(parameter, "-"))
	}
	m := p.p.m
	m.mu.Lock()
	ignored := m.tamperProtection
	m.mu.Unlock()
	name := quoted(strings.TrimPrefix(strings.TrimSpace(exclusion), "'"))
	switch {
	case ignored:
		return nil
	case strings.EqualFold(cmdlet, "Add-MpPreference"):
		return p.Platform.Registry.Set(exclusionsKey+kind, platform.RegistryValue{Name: name, Type: platform.RegistryDWord})
	case strings.EqualFold(cmdlet, "Remove-MpPreference"):
		if err := p.Platform.Registry.Delete(exclusionsKey+kind, name); !errors.Is(err, fault.ErrNotExist) {
			return err
		}
		return nil
	}
	return errors.New("The term '" + cmdlet + "' is not known here.")
}
