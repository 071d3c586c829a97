package wine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	folder := t.TempDir()
	p := &Prefix{folder: folder}
	for _, dir := range []string{"Program Files/containerd/bin", "windows/system32", "k"} {
		if err := os.MkdirAll(filepath.Join(p.DriveC(), dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.DriveC(), "k", "Kubelet.exe"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		`C:\`:               "",
		`c:`:                "",
		`c:\K\kubelet.EXE`:  "k/Kubelet.exe",
		`/C:/k/kubelet.exe`: "k/Kubelet.exe",
		`C:\program files\Containerd\BIN\new.exe`: "Program Files/containerd/bin/new.exe",
		`C:\New\Folder`:            "New/Folder",
		`C:/windows//SYSTEM32/./x`: "windows/system32/x",
		`C:\windows\..\k`:          "k",
		`C:\..\..\..\etc\passwd`:   "etc/passwd",
	} {
		got, err := p.Path(path)
		switch {
		case err != nil:
			t.Errorf("%s: %v", path, err)
		case got != filepath.Join(p.DriveC(), want):
			t.Errorf("%s: got is %v, want %v", path, got, filepath.Join(p.DriveC(), want))
		}
	}
	for _, path := range []string{"", `D:\x`, `\\server\share`, "k", `\\.\pipe\x`} {
		if got, err := p.Path(path); err == nil {
			t.Errorf("%s is at %s", path, got)
		}
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Prepare(t.Context(), filepath.Join(t.TempDir(), "prefix"))
	switch {
	case err == nil:
		t.Error("no error, want one")
	case !strings.Contains(err.Error(), "wineserver"):
		t.Errorf("err.Error() lacks %q:\n%s", "wineserver", err.Error())
	case !strings.Contains(err.Error(), InstallCommand):
		t.Errorf("err.Error() lacks %q:\n%s", InstallCommand, err.Error())
	}
}
