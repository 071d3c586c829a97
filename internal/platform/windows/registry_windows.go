package windows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// registryKeys is the 64-bit registry, even in a 32-bit process.
type registryKeys struct{}

func (registryKeys) Get(key, name string) (platform.RegistryValue, error) {
	open, err := openKey(key, registry.QUERY_VALUE)
	if err != nil {
		return platform.RegistryValue{}, err
	}
	defer open.Close()
	value, err := readValue(open, name)
	return value, failed(err, "read registry value %s\\%s", key, name)
}

func (registryKeys) Set(key string, value platform.RegistryValue) error {
	root, path, err := splitKey(key)
	if err != nil {
		return err
	}
	open, _, err := registry.CreateKey(root, path, registry.SET_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return failed(err, "create registry key %s", key)
	}
	defer open.Close()
	return failed(writeValue(open, value), "write registry value %s\\%s", key, value.Name)
}

func (registryKeys) Delete(key, name string) error {
	open, err := openKey(key, registry.SET_VALUE)
	if err != nil {
		return err
	}
	defer open.Close()
	return failed(open.DeleteValue(name), "delete registry value %s\\%s", key, name)
}

func (r registryKeys) DeleteKey(key string) error {
	root, path, err := splitKey(key)
	if err != nil {
		return err
	}
	if path == "" {
		return fmt.Errorf("delete registry key %s: a whole hive cannot be deleted: %w", key, fault.ErrPermission)
	}
	_, below, err := r.List(key)
	if err != nil {
		return err
	}
	for _, name := range below {
		if err := r.DeleteKey(key + `\` + name); err != nil && !errors.Is(err, fault.ErrNotExist) {
			return err
		}
	}
	return failed(registry.DeleteKey(root, path), "delete registry key %s", key)
}

func (registryKeys) List(key string) ([]platform.RegistryValue, []string, error) {
	open, err := openKey(key, registry.QUERY_VALUE|registry.ENUMERATE_SUB_KEYS)
	if err != nil {
		return nil, nil, err
	}
	defer open.Close()
	keys, err := open.ReadSubKeyNames(-1)
	if err != nil {
		return nil, nil, failed(err, "list registry key %s", key)
	}
	names, err := open.ReadValueNames(-1)
	if err != nil {
		return nil, nil, failed(err, "list the values of registry key %s", key)
	}
	byName := func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }
	slices.SortFunc(keys, byName)
	slices.SortFunc(names, byName)
	var values []platform.RegistryValue
	for _, name := range names {
		value, err := readValue(open, name)
		if errors.Is(err, registry.ErrNotExist) {
			continue // the value was deleted after it was listed
		}
		if err != nil {
			return nil, nil, failed(err, "read registry value %s\\%s", key, name)
		}
		values = append(values, value)
	}
	return values, keys, nil
}

func openKey(key string, access uint32) (registry.Key, error) {
	root, path, err := splitKey(key)
	if err != nil {
		return 0, err
	}
	open, err := registry.OpenKey(root, path, access|registry.WOW64_64KEY)
	return open, failed(err, "open registry key %s", key)
}

func splitKey(key string) (registry.Key, string, error) {
	name, path, _ := strings.Cut(strings.TrimSuffix(key, `\`), `\`)
	switch strings.ToUpper(name) {
	case "HKLM":
		return registry.LOCAL_MACHINE, path, nil
	case "HKCU":
		return registry.CURRENT_USER, path, nil
	case "HKU":
		return registry.USERS, path, nil
	case "HKCR":
		return registry.CLASSES_ROOT, path, nil
	}
	return 0, "", fmt.Errorf(`registry key %q does not begin with HKLM\, HKCU\, HKU\ or HKCR\: %w`, key,
		fault.ErrNotExist)
}

// readValue reads a value of any type. The length of the data may not fit the
// type: Windows allows that, but package registry returns an error for it.
func readValue(key registry.Key, name string) (platform.RegistryValue, error) {
	data := make([]byte, 256)
	for {
		n, kind, err := key.GetValue(name, data)
		if errors.Is(err, registry.ErrShortBuffer) {
			data = make([]byte, max(n, 2*len(data))) // the value may grow between the calls
			continue
		}
		if err != nil {
			return platform.RegistryValue{}, err
		}
		return decodeValue(name, kind, data[:n]), nil
	}
}

func decodeValue(name string, kind uint32, data []byte) platform.RegistryValue {
	value := platform.RegistryValue{Name: name}
	switch {
	case kind == registry.SZ:
		value.Type, value.String = platform.RegistryString, firstOf(decodeStrings(data))
	case kind == registry.EXPAND_SZ:
		value.Type, value.String = platform.RegistryExpandString, firstOf(decodeStrings(data))
	case kind == registry.MULTI_SZ:
		value.Type, value.Strings = platform.RegistryMultiString, decodeStrings(data)
	case kind == registry.DWORD && len(data) == 4:
		value.Type, value.Integer = platform.RegistryDWord, uint64(binary.LittleEndian.Uint32(data))
	case kind == registry.QWORD && len(data) == 8:
		value.Type, value.Integer = platform.RegistryQWord, binary.LittleEndian.Uint64(data)
	default:
		value.Type, value.Binary = platform.RegistryBinary, data
	}
	return value
}

// decodeStrings reads zero-terminated strings up to an empty one or the end.
func decodeStrings(data []byte) []string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	var texts []string
	for len(units) > 0 && units[0] != 0 {
		end := slices.Index(units, 0)
		if end < 0 {
			end = len(units)
		}
		texts = append(texts, string(utf16.Decode(units[:end])))
		units = units[min(end+1, len(units)):]
	}
	return texts
}

func firstOf(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

func writeValue(key registry.Key, value platform.RegistryValue) error {
	switch value.Type {
	case platform.RegistryString:
		return key.SetStringValue(value.Name, value.String)
	case platform.RegistryExpandString:
		return key.SetExpandStringValue(value.Name, value.String)
	case platform.RegistryMultiString:
		return key.SetStringsValue(value.Name, value.Strings)
	case platform.RegistryDWord:
		if value.Integer>>32 != 0 {
			return fmt.Errorf("%d does not fit a REG_DWORD: %w", value.Integer, windows.ERROR_INVALID_PARAMETER)
		}
		return key.SetDWordValue(value.Name, uint32(value.Integer))
	case platform.RegistryQWord:
		return key.SetQWordValue(value.Name, value.Integer)
	case platform.RegistryBinary:
		return key.SetBinaryValue(value.Name, value.Binary)
	}
	return fmt.Errorf("unknown registry type %q: %w", value.Type, windows.ERROR_INVALID_PARAMETER)
}

func keyExists(key string) (bool, error) {
	open, err := openKey(key, registry.QUERY_VALUE)
	if errors.Is(err, fault.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, failed(open.Close(), "close registry key %s", key)
}
