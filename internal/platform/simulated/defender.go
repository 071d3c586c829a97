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
// with these cmdlets. It returns the text that PowerShell prints behind the name of the cmdlet; "": none.
func (p *Process) setExclusion(cmdlet, rest string) (problem string) {
	unknown := "The term '" + cmdlet + "' is not recognized as the name of a cmdlet, function, script file, or operable program."
	if _, err := p.Platform.Services.Status(context.Background(), "WinDefend"); errors.Is(err, fault.ErrNoService) {
		return unknown
	}
	parameter, exclusion, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kinds := map[string]string{"-exclusionpath": "Paths", "-exclusionprocess": "Processes"}
	kind, known := kinds[fold(parameter)]
	if !known {
		return fmt.Sprintf("A parameter cannot be found that matches parameter name '%s'.", strings.TrimLeft(parameter, "-"))
	}
	m := p.p.m
	m.mu.Lock()
	ignored := m.tamperProtection
	m.mu.Unlock()
	name := quoted(strings.TrimPrefix(strings.TrimSpace(exclusion), "'"))
	var err error
	switch {
	case ignored:
	case strings.EqualFold(cmdlet, "Add-MpPreference"):
		err = p.Platform.Registry.Set(exclusionsKey+kind, platform.RegistryValue{Name: name, Type: platform.RegistryDWord})
	case strings.EqualFold(cmdlet, "Remove-MpPreference"):
		err = p.Platform.Registry.Delete(exclusionsKey+kind, name)
	default:
		return unknown
	}
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return err.Error()
	}
	return ""
}
