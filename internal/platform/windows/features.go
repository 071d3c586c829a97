package windows

import (
	"context"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// features manages Windows' optional features through dism.exe. DISM's API needs a DLL that not
// every edition has, and is no faster: a session of the API takes seconds, too.
type features struct {
	dism      string // full path
	processes platform.Processes
}

// Exit codes of dism.exe.
const (
	dismElevation = 740
	dismReboot    = 3010
	// ERROR_CBS… 0x800f080c: no feature has this name.
	dismUnknownFeature = 0x800f080c
)

func (f features) State(ctx context.Context, name string) (platform.FeatureState, error) {
	what := "read the state of feature " + name
	output, err := f.run(ctx, what, "/Get-FeatureInfo", "/FeatureName:"+name)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(output.text) == "" { // Wine's dism.exe does nothing and prints nothing
		return "", fmt.Errorf("%s: dism.exe printed nothing: %w", what, fault.ErrNotSupported)
	}
	state, ok := parseFeatureState(output.text)
	if !ok {
		return "", fmt.Errorf("%s: dism.exe printed no state but %q", what, output.text)
	}
	return state, nil
}

func (f features) Enable(ctx context.Context, name string) (bool, error) {
	output, err := f.run(ctx, "enable feature "+name,
		"/Enable-Feature", "/FeatureName:"+name, "/All", "/NoRestart")
	return output.reboot, err
}

func (f features) Disable(ctx context.Context, name string) (bool, error) {
	output, err := f.run(ctx, "disable feature "+name,
		"/Disable-Feature", "/FeatureName:"+name, "/NoRestart")
	return output.reboot, err
}

type dismOutput struct {
	text   string
	reboot bool
}

func (f features) run(ctx context.Context, what string, args ...string) (dismOutput, error) {
	args = append([]string{"/Online", "/English"}, args...)
	text, exitCode, err := runTool(ctx, f.processes, f.dism, args...)
	if err != nil {
		return dismOutput{}, fmt.Errorf("%s: %w", what, err)
	}
	failure := &ToolError{Path: f.dism, Args: args, ExitCode: exitCode, Output: text}
	switch uint32(exitCode) {
	case 0:
		return dismOutput{text: text}, nil
	case dismReboot:
		return dismOutput{text: text, reboot: true}, nil
	case dismElevation:
		return dismOutput{}, fmt.Errorf("%s: %w: %w", what, fault.ErrPermission, failure)
	case dismUnknownFeature:
		return dismOutput{}, fmt.Errorf("%s: %w: %w", what, fault.ErrNotExist, failure)
	}
	return dismOutput{}, fmt.Errorf("%s: %w", what, failure)
}

// parseFeatureState finds the line "State : Enabled" of dism.exe /English.
func parseFeatureState(output string) (platform.FeatureState, bool) {
	for line := range strings.Lines(output) {
		name, value, found := strings.Cut(line, ":")
		if !found || strings.TrimSpace(name) != "State" {
			continue
		}
		switch strings.TrimSpace(value) {
		case "Enabled":
			return platform.FeatureEnabled, true
		case "Disabled", "Disabled with Payload Removed":
			return platform.FeatureDisabled, true
		case "Enable Pending":
			return platform.FeatureEnablePending, true
		case "Disable Pending", "Uninstall Pending":
			return platform.FeatureDisablePending, true
		}
	}
	return "", false
}
