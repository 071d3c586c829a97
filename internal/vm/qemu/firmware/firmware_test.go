package firmware

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// descriptors of Debian, with their files in the test's folder.
func debian(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, content := range map[string]string{
		"code.fd": "", "vars.fd": "", "code.ms.fd": "", "vars.ms.fd": "",
		"60-plain.json":    text(folder, "code.fd", "vars.fd", `"acpi-s3"`),
		"50-secure.json":   text(folder, "code.ms.fd", "vars.fd", `"requires-smm", "secure-boot"`),
		"40-enrolled.json": text(folder, "code.ms.fd", "vars.ms.fd", `"enrolled-keys", "requires-smm", "secure-boot"`),
		"README":           "no descriptor",
	} {
		write(t, filepath.Join(folder, name), content)
	}
	return folder
}

func text(folder, code, vars, features string) string {
	return `{"interface-types": ["uefi"], "mapping": {"device": "flash",
		"executable": {"filename": "` + filepath.Join(folder, code) + `", "format": "raw"},
		"nvram-template": {"filename": "` + filepath.Join(folder, vars) + `", "format": "raw"}},
		"targets": [{"architecture": "x86_64", "machines": ["pc-i440fx-*", "pc-q35-*"]}],
		"features": [` + features + `]}`
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheFeaturesDecide(t *testing.T) {
	folder := debian(t)
	in := func(name string) string { return filepath.Join(folder, name) }
	for want, expected := range map[Want]Firmware{
		{}: {Code: Image{in("code.fd"), "raw"}, Vars: Image{in("vars.fd"), "raw"}, Descriptor: in("60-plain.json")},
		{SecureBoot: true}: {Code: Image{in("code.ms.fd"), "raw"}, Vars: Image{in("vars.ms.fd"), "raw"}, SMM: true,
			Descriptor: in("40-enrolled.json")},
	} {
		got, err := Find([]string{"/no/such/folder", folder}, want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%+v (-expected +got):\n%s", want, diff)
		}
	}
}

// An earlier folder overrides a descriptor by its name, and an empty file hides it.
func TestAnEarlierFolderOverrides(t *testing.T) {
	folder, user := debian(t), t.TempDir()
	write(t, filepath.Join(user, "60-plain.json"), "")
	var missing *MissingError
	if _, err := Find([]string{user, folder}, Want{}); !errors.As(err, &missing) || len(missing.Unusable) != 3 {
		t.Errorf("got %v", err)
	}
	write(t, filepath.Join(user, "60-plain.json"), text(folder, "code.ms.fd", "vars.ms.fd", ""))
	got, err := Find([]string{user, folder}, Want{})
	if err != nil || got.Code.Path != filepath.Join(folder, "code.ms.fd") {
		t.Errorf("got %+v, %v", got, err)
	}
	write(t, filepath.Join(user, "00-first.json"), text(folder, "code.fd", "code.fd", ""))
	if got, err := Find([]string{user, folder}, Want{}); err != nil || got.Vars.Path != filepath.Join(folder, "code.fd") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnusableDescriptorsAreSkippedWithAReason(t *testing.T) {
	folder := debian(t)
	good := text(folder, "code.fd", "vars.fd", "")
	for _, change := range [][2]string{
		{"uefi", "bios"}, {"flash", "memory"}, {`"device"`, `"mode": "stateless", "device"`}, {"x86_64", "aarch64"},
		{"pc-q35-*", "virt-*"}, {"pc-q35-*", "["}, {"raw", "vmdk"}, {filepath.Join(folder, "code.fd"), "code.fd"},
		{"code.fd", "absent.fd"}, {`"features": []`, `"features": ["enrolled-keys"]`}, {`"features"`, `features`},
		{filepath.Join(folder, "vars.fd"), folder},
	} {
		user := t.TempDir()
		write(t, filepath.Join(user, "60-plain.json"), strings.Replace(good, change[0], change[1], 1))
		_, err := Find([]string{user}, Want{})
		var missing *MissingError
		if !errors.As(err, &missing) {
			t.Fatalf("%s instead of %s: got %v, want a MissingError", change[1], change[0], err)
		}
		if len(missing.Unusable) != 1 || missing.Remedy() == "" {
			t.Errorf("%s instead of %s: %d unusable, remedy %q; want one and a remedy", change[1], change[0],
				len(missing.Unusable), missing.Remedy())
		}
	}
}

func TestFolders(t *testing.T) {
	got := Folders("/home/user/.config", "/opt/qemu/bin/qemu-system-x86_64")
	expected := []string{
		"/home/user/.config/qemu/firmware", "/etc/qemu/firmware", "/usr/share/qemu/firmware", "/opt/qemu/share/qemu/firmware",
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Error(diff)
	}
	if got := Folders("relative", "/usr/bin/qemu-system-x86_64"); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(text("/f", "code.fd", "vars.fd", "")), false)
	f.Add([]byte(text("/f", "code.fd", "vars.fd", `"enrolled-keys", "secure-boot"`)), true)
	f.Fuzz(func(t *testing.T, content []byte, secure bool) {
		got, err := parse(content, Want{SecureBoot: secure})
		if err == nil && (!filepath.IsAbs(got.Code.Path) || !filepath.IsAbs(got.Vars.Path)) {
			t.Errorf("accepted %+v", got)
		}
	})
}
