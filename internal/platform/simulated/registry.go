package simulated

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// registryKey is a key with its values and subkeys, both by folded name: names ignore case ("Structure of the Registry").
// RegCreateKeyEx makes the keys on the way to a key.
type registryKey struct {
	name   string // as spelled
	values map[string]platform.RegistryValue
	keys   map[string]*registryKey
	denied bool // see DenyKey
}

func newRegistryKey(name string) *registryKey {
	return &registryKey{name: name, values: map[string]platform.RegistryValue{}, keys: map[string]*registryKey{}}
}

func splitKey(key string) ([]string, error) {
	parts := strings.Split(strings.Trim(key, `\`), `\`)
	switch strings.ToUpper(parts[0]) {
	case "HKLM", "HKCU", "HKU", "HKCR":
	default:
		return nil, fmt.Errorf(`registry key %q does not begin with HKLM\, HKCU\, HKU\ or HKCR\: %w`, key,
			fault.ErrNotExist)
	}
	return parts, nil
}

func (k *registryKey) find(key string) (*registryKey, error) {
	parts, err := splitKey(key)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		if k = k.keys[fold(part)]; k == nil {
			return nil, fmt.Errorf("registry key %s: %w", key, fault.ErrNotExist)
		}
	}
	return k, nil
}

// readable returns a key whose values a process asks for. RegOpenKeyEx is ERROR_ACCESS_DENIED for a key without KEY_READ
// ("Registry Key Security and Access Rights"), also if its parent lists it.
func (k *registryKey) readable(key string) (*registryKey, error) {
	found, err := k.find(key)
	if err == nil && found.denied {
		return nil, fmt.Errorf("open registry key %s: %w", key, fault.ErrPermission)
	}
	return found, err
}

// DenyKey makes a key unreadable, as keys of a few services of Windows are for administrators.
func (m *Machine) DenyKey(key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if isServicesKey(key) {
		m.writeServiceKeys()
	}
	k, err := m.registry.find(key)
	if err == nil {
		k.denied = true
	}
	return err
}

func (k *registryKey) set(key string, value platform.RegistryValue) error {
	parts, err := splitKey(key)
	if err != nil {
		return err
	}
	for _, part := range parts {
		next := k.keys[fold(part)]
		if next == nil {
			next = newRegistryKey(part)
			k.keys[fold(part)] = next
		}
		k = next
	}
	k.values[fold(value.Name)] = normalise(value)
	return nil
}

// normalise returns the value without the fields that its type does not use, as the registry would
// store it.
func normalise(v platform.RegistryValue) platform.RegistryValue {
	out := platform.RegistryValue{Name: v.Name, Type: v.Type}
	switch v.Type {
	case platform.RegistryString, platform.RegistryExpandString:
		out.String = v.String
	case platform.RegistryMultiString:
		out.Strings = slices.Clone(v.Strings)
	case platform.RegistryDWord:
		out.Integer = uint64(uint32(v.Integer))
	case platform.RegistryQWord:
		out.Integer = v.Integer
	default:
		out.Binary = slices.Clone(v.Binary)
	}
	return out
}

// registryView implements platform.Registry for one process.
type registryView struct{ p *process }

func (v registryView) Get(key, name string) (platform.RegistryValue, error) {
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	if v.p.gone {
		return platform.RegistryValue{}, ErrKilled
	}
	if isServicesKey(key) {
		v.p.m.writeServiceKeys()
	}
	k, err := v.p.m.registry.readable(key)
	if err != nil {
		return platform.RegistryValue{}, err
	}
	value, ok := k.values[fold(name)]
	if !ok {
		return platform.RegistryValue{}, fmt.Errorf("registry value %s of %s: %w", name, key, fault.ErrNotExist)
	}
	return normalise(value), nil
}

func (v registryView) Set(key string, value platform.RegistryValue) error {
	return v.p.do(OpRegistrySet, key+`\`+value.Name, func() error {
		switch value.Type {
		case platform.RegistryString, platform.RegistryExpandString, platform.RegistryMultiString,
			platform.RegistryDWord, platform.RegistryQWord, platform.RegistryBinary:
			return v.p.m.registry.set(key, value)
		}
		return fmt.Errorf("set registry value %s of %s: type %q: %w", value.Name, key, value.Type,
			fault.ErrNotSupported)
	})
}

func (v registryView) Delete(key, name string) error {
	return v.p.do(OpRegistryDelete, key+`\`+name, func() error {
		k, err := v.p.m.registry.find(key)
		if err != nil {
			return err
		}
		if _, ok := k.values[fold(name)]; !ok {
			return fmt.Errorf("delete registry value %s of %s: %w", name, key, fault.ErrNotExist)
		}
		delete(k.values, fold(name))
		return nil
	})
}

func (v registryView) DeleteKey(key string) error {
	return v.p.do(OpRegistryDeleteKey, key, func() error {
		if _, err := v.p.m.registry.find(key); err != nil {
			return err
		}
		parts, _ := splitKey(key)
		if len(parts) == 1 {
			return fmt.Errorf("delete registry key %s: %w", key, fault.ErrPermission)
		}
		parent, _ := v.p.m.registry.find(strings.Join(parts[:len(parts)-1], `\`))
		delete(parent.keys, fold(parts[len(parts)-1]))
		return nil
	})
}

func (v registryView) List(key string) ([]platform.RegistryValue, []string, error) {
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	if v.p.gone {
		return nil, nil, ErrKilled
	}
	if isServicesKey(key) {
		v.p.m.writeServiceKeys()
	}
	k, err := v.p.m.registry.readable(key)
	if err != nil {
		return nil, nil, err
	}
	var values []platform.RegistryValue
	for _, name := range sortedKeys(k.values) {
		values = append(values, normalise(k.values[name]))
	}
	var keys []string
	for _, name := range sortedKeys(k.keys) {
		keys = append(keys, k.keys[name].name)
	}
	return values, keys, nil
}
