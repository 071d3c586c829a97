package windows

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func jsonText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFacts(t *testing.T) {
	m := New().Machine
	facts, err := m.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", facts)
	switch {
	case facts.Hostname == "":
		t.Error("facts.Hostname is empty")
	case facts.Product == "":
		t.Error("facts.Product is empty")
	case !strings.Contains(facts.Build, "."):
		t.Errorf("facts.Build lacks %q:\n%s", ".", facts.Build)
	case facts.Architecture == "":
		t.Error("facts.Architecture is empty")
	case facts.BootID == "":
		t.Error("facts.BootID is empty")
	case facts.Uptime <= 0:
		t.Errorf("facts.Uptime is %v, want more than 0", facts.Uptime)
	case facts.CPUs < 1:
		t.Errorf("facts.CPUs is %v, want at least 1", facts.CPUs)
	case facts.Memory == 0:
		t.Error("facts.Memory is 0")
	case facts.MemoryFree == 0:
		t.Error("facts.MemoryFree is 0")
	case facts.SystemDrive != "C:":
		t.Errorf("facts.SystemDrive is %q, want %q", facts.SystemDrive, "C:")
	case facts.DiskFree == 0:
		t.Error("facts.DiskFree is 0")
	case !facts.Elevated:
		t.Error("facts.Elevated is false, want true")
	}
	again, err := m.Facts(t.Context())
	if err != nil || again.BootID != facts.BootID {
		t.Errorf("boot id %s, then %s, %v", facts.BootID, again.BootID, err)
	}
}

func TestPendingReboot(t *testing.T) {
	p := New()
	const key = `HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending`
	if err := p.Registry.Set(key, platform.RegistryValue{Name: "x", Type: platform.RegistryString}); err != nil {
		t.Fatal(err)
	}
	facts, err := p.Machine.Facts(t.Context())
	switch {
	case err != nil:
		t.Error(err)
	case len(facts.PendingReboot) == 0:
		t.Error("facts.PendingReboot is empty")
	}
	if err := p.Registry.DeleteKey(key); err != nil {
		t.Fatal(err)
	}
}

func TestBroadcastEnvironment(t *testing.T) {
	if err := New().Machine.BroadcastEnvironment(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRegistry(t *testing.T) {
	r := New().Registry
	const key = `HKLM\SOFTWARE\swdt test\deep\er`
	values := []platform.RegistryValue{
		{Name: "", Type: platform.RegistryString, String: "the default"},
		{Name: "binary", Type: platform.RegistryBinary, Binary: []byte{0, 1, 255}},
		{Name: "dword", Type: platform.RegistryDWord, Integer: 0xffffffff},
		{Name: "expand", Type: platform.RegistryExpandString, String: `%SystemRoot%\x;€`},
		{Name: "list", Type: platform.RegistryMultiString, Strings: []string{"a", "b c"}},
		{Name: "none", Type: platform.RegistryMultiString},
		{Name: "qword", Type: platform.RegistryQWord, Integer: 1 << 63},
		{Name: "text", Type: platform.RegistryString, String: strings.Repeat("long ", 200)},
	}
	for _, value := range values {
		if err := r.Set(key, value); err != nil {
			t.Fatal(err)
		}
		got, err := r.Get(`hklm`+strings.ToUpper(key[4:]), strings.ToUpper(value.Name))
		got.Name = value.Name
		if err != nil || !reflect.DeepEqual(got, value) {
			t.Errorf("%+v, %v, want %+v", got, err, value)
		}
	}
	list, keys, err := r.List(key)
	switch {
	case err != nil:
		t.Error(err)
	case len(keys) != 0:
		t.Errorf("keys is %v, want it empty", keys)
	case !reflect.DeepEqual(list, values):
		t.Errorf("list is %v, want %v", list, values)
	}
	if _, err := r.Get(`HKEY\x`, "x"); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("a key of no hive: %v", err)
	}
	if err := r.Set(key, platform.RegistryValue{Name: "x", Type: platform.RegistryDWord,
		Integer: 1 << 32}); err == nil {
		t.Error("a DWORD of 33 bits was taken")
	}
	if err := r.Delete(key, "list"); err != nil {
		t.Error(err)
	}
	if err := r.Delete(key, "list"); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("second delete: %v", err)
	}
	if err := r.DeleteKey(`HKLM\SOFTWARE\swdt test`); err != nil {
		t.Error(err)
	}
	if _, _, err := r.List(key); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("list of a deleted key: %v", err)
	}
	if err := r.DeleteKey(key); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("second delete of the key: %v", err)
	}
}
