package settings

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// EnvironmentKey is the registry key of the machine's variables.
const EnvironmentKey = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`

const pathName = "Path"

// maxValue is the maximum length of an environment variable in UTF-16 units.
const maxValue = 32767

// Variable is one of the machine's environment variables.
type Variable struct {
	Name   string
	Value  string // unexpanded, as in %SystemRoot%\system32
	Remove bool   // in a change: whether to delete the variable
}

// EnvironmentChange lists the changes of variables and the changes of PATH's folders. The changes of
// variables are made first.
type EnvironmentChange struct {
	Variables  []Variable
	AddPath    []string // appended unless present
	RemovePath []string
}

// Environment returns the machine's variables, sorted by name.
func Environment(registry platform.Registry) ([]Variable, error) {
	values, _, err := registry.List(EnvironmentKey)
	if err != nil {
		return nil, fmt.Errorf("read the machine's environment: %w", err)
	}
	var variables []Variable
	for _, v := range values {
		if isText(v) {
			variables = append(variables, Variable{Name: v.Name, Value: v.String})
		}
	}
	return variables, nil
}

func isText(v platform.RegistryValue) bool {
	return v.Type == platform.RegistryString || v.Type == platform.RegistryExpandString
}

// SetEnvironment applies `change` to the machine's variables, and notifies running programs if
// anything changed. It reports whether anything changed, even if it returns an error.
func SetEnvironment(ctx context.Context, registry platform.Registry, machine platform.Machine,
	change EnvironmentChange) (changed bool, err error) {
	if err := change.check(); err != nil {
		return false, err
	}
	changed, err = apply(registry, change)
	if err != nil {
		err = fmt.Errorf("change the machine's environment: %w", err)
	}
	if !changed {
		return false, err
	}
	// Notify after an error too: programs should see the changes that were made
	// before the error.
	if notifyErr := machine.BroadcastEnvironment(ctx); notifyErr != nil {
		err = errors.Join(err, fmt.Errorf("notify running programs of the changed environment: %w", notifyErr))
	}
	return true, err
}

func (c EnvironmentChange) check() error {
	for _, v := range c.Variables {
		switch {
		case v.Name == "" || strings.ContainsAny(v.Name, "=\x00"):
			return invalidf("environment: %q is not a valid variable name", v.Name)
		case strings.Contains(v.Value, "\x00") || len(utf16.Encode([]rune(v.Value))) > maxValue:
			return invalidf("environment: the value of %s has a NUL or more than %d characters", v.Name, maxValue)
		case v.Remove && strings.EqualFold(v.Name, pathName):
			return invalidf("environment: removing PATH as a whole would break Windows; remove folders from it")
		}
	}
	for _, folder := range append(append([]string{}, c.AddPath...), c.RemovePath...) {
		if strings.TrimSpace(folder) == "" || strings.ContainsAny(folder, ";\"\x00") {
			return invalidf("environment: %q is not a valid folder for PATH", folder)
		}
	}
	return nil
}

func apply(registry platform.Registry, change EnvironmentChange) (changed bool, err error) {
	step := func(did bool, err error) error {
		changed = changed || did
		return err
	}
	for _, v := range change.Variables {
		if err := step(setVariable(registry, v)); err != nil {
			return changed, err
		}
	}
	err = step(setPath(registry, change.AddPath, change.RemovePath))
	return changed, err
}

func setVariable(registry platform.Registry, want Variable) (changed bool, err error) {
	is, err := registry.Get(EnvironmentKey, want.Name)
	missing := errors.Is(err, fault.ErrNotExist)
	if err != nil && !missing {
		return false, err
	}
	if want.Remove {
		if missing {
			return false, nil
		}
		err := registry.Delete(EnvironmentKey, want.Name)
		return err == nil, err
	}
	value := platform.RegistryValue{Name: want.Name, Type: platform.RegistryString, String: want.Value}
	if !missing && is.Name != "" {
		value.Name = is.Name // keep the present spelling
	}
	if is.Type == platform.RegistryExpandString || refersToVariable(want.Value) {
		value.Type = platform.RegistryExpandString
	}
	if !missing && is.Type == value.Type && is.String == value.String {
		return false, nil
	}
	if err := registry.Set(EnvironmentKey, value); err != nil {
		return false, err
	}
	return true, nil
}

// refersToVariable reports whether a value contains a reference like
// %SystemRoot%.
func refersToVariable(value string) bool {
	parts := strings.Split(value, "%")
	for i := 1; i < len(parts)-1; i++ {
		if parts[i] != "" && !strings.ContainsAny(parts[i], ";=") {
			return true
		}
	}
	return false
}

func setPath(registry platform.Registry, add, remove []string) (changed bool, err error) {
	if len(add) == 0 && len(remove) == 0 {
		return false, nil
	}
	is, err := registry.Get(EnvironmentKey, pathName)
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return false, err
	}
	value := editPath(is.String, add, remove)
	if value == is.String {
		return false, nil
	}
	if len(value) > maxValue {
		return false, invalidf("environment: PATH would be longer than %d characters", maxValue)
	}
	if is.Type == "" { // a machine without a PATH: create it as Windows would have done
		err := registry.Set(EnvironmentKey,
			platform.RegistryValue{Name: pathName, Type: platform.RegistryExpandString, String: value})
		return err == nil, err
	}
	return setVariable(registry, Variable{Name: pathName, Value: value})
}
