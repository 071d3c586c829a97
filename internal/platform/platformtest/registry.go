package platformtest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func testRegistry(t *testing.T, fixture func(*testing.T) Fixture) {
	// key returns a registry key that only this test uses, and that is removed
	// after the test.
	key := func(t *testing.T, f Fixture) string {
		name := `HKCU\Software\swdt-hosttest-` + base(t.Name())
		remove := func() {
			if err := f.Platform.Registry.DeleteKey(name); err != nil && !errors.Is(err, fault.ErrNotExist) {
				t.Error(err)
			}
		}
		remove()
		t.Cleanup(remove)
		return name
	}
	t.Run("TypesRoundTrip", func(t *testing.T) {
		f := fixture(t)
		key := key(t, f) + `\deep\below`
		for i, want := range []platform.RegistryValue{
			{Type: platform.RegistryString, String: "täxt with spaces"},
			{Type: platform.RegistryString, String: ""},
			{Type: platform.RegistryExpandString, String: `%SystemRoot%\x;%PATH%`},
			{Type: platform.RegistryMultiString, Strings: []string{"one", "two words", "drei"}},
			{Type: platform.RegistryDWord, Integer: 0xFFFFFFFF},
			{Type: platform.RegistryDWord, Integer: 0},
			{Type: platform.RegistryQWord, Integer: 1<<63 + 5},
			{Type: platform.RegistryBinary, Binary: []byte{0, 1, 0xff}},
		} {
			want.Name = fmt.Sprintf("value %d", i)
			check(t, f.Platform.Registry.Set(key, want))
			got, err := f.Platform.Registry.Get(key, want.Name)
			check(t, err)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("set %+v, got %+v", want, got)
			}
		}
	})
	t.Run("TheDefaultValue", func(t *testing.T) {
		f := fixture(t)
		key := key(t, f)
		check(t, f.Platform.Registry.Set(key, platform.RegistryValue{Type: platform.RegistryString, String: "default"}))
		switch got, err := f.Platform.Registry.Get(key, ""); {
		case got.String != "default":
			t.Errorf("got.String is %q, want %q", got.String, "default")
		case got.Name != "":
			t.Errorf(`got.Name is %q, want ""`, got.Name)
		case err != nil:
			t.Error(err)
		}
	})
	t.Run("NamesHaveNoCase", func(t *testing.T) {
		f := fixture(t)
		key := key(t, f)
		check(t, f.Platform.Registry.Set(key+`\Sub`,
			platform.RegistryValue{Name: "Name", Type: platform.RegistryDWord, Integer: 1}))
		check(t, f.Platform.Registry.Set(key+`\SUB`,
			platform.RegistryValue{Name: "NAME", Type: platform.RegistryDWord, Integer: 2}))
		switch got, err := f.Platform.Registry.Get(key+`\sub`, "name"); {
		case got.Integer != 2:
			t.Errorf("got.Integer is %v, want 2", got.Integer)
		case err != nil:
			t.Error(err)
		}
		values, _, err := f.Platform.Registry.List(key + `\sub`)
		switch {
		case len(values) != 1:
			t.Errorf("values has %d elements, want 1: %v", len(values), values)
		case err != nil:
			t.Error(err)
		}
	})
	t.Run("MissingIsErrNotExist", func(t *testing.T) {
		f := fixture(t)
		key := key(t, f)
		r := f.Platform.Registry
		_, get := r.Get(key, "x")
		_, _, list := r.List(key)
		for name, err := range map[string]error{
			"get": get, "list": list, "delete": r.Delete(key, "x"), "deleteKey": r.DeleteKey(key),
		} {
			if !errors.Is(err, fault.ErrNotExist) {
				t.Errorf("%s of a missing key: %v", name, err)
			}
		}
		check(t, r.Set(key, platform.RegistryValue{Name: "a", Type: platform.RegistryString}))
		if _, err := r.Get(key, "x"); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("get of a missing value: %v", err)
		}
		if err := r.Delete(key, "x"); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("delete of a missing value: %v", err)
		}
		if _, err := r.Get(`HKXX\Software`, "x"); err == nil {
			t.Error("an invalid root was accepted")
		}
	})
	t.Run("ListAndDelete", func(t *testing.T) {
		f := fixture(t)
		key, r := key(t, f), f.Platform.Registry
		for _, name := range []string{"b", "a", "c"} {
			check(t, r.Set(key, platform.RegistryValue{Name: name, Type: platform.RegistryString, String: name}))
			check(t, r.Set(key+`\key-`+name+`\deeper`,
				platform.RegistryValue{Name: name, Type: platform.RegistryString}))
		}
		values, keys, err := r.List(key)
		check(t, err)
		var names []string
		for _, v := range values {
			names = append(names, v.Name)
		}
		if !reflect.DeepEqual(names, []string{"a", "b", "c"}) ||
			!reflect.DeepEqual(keys, []string{"key-a", "key-b", "key-c"}) {
			t.Errorf("values %v, keys %v", names, keys)
		}
		check(t, r.Delete(key, "B"))
		check(t, r.DeleteKey(key+`\KEY-B`))
		values, keys, err = r.List(key)
		switch {
		case len(values) != 2:
			t.Errorf("values has %d elements, want 2: %v", len(values), values)
		case len(keys) != 2:
			t.Errorf("keys has %d elements, want 2: %v", len(keys), keys)
		case err != nil:
			t.Error(err)
		}
	})
}
