package join_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/host/simulated"
)

// SYSTEM runs what is in these folders, or does what it says.
func TestNoOrdinaryAccountMayPutAFileWhereSYSTEMLooks(t *testing.T) {
	l := newLab(t)
	l.mustJoin()
	files := l.Machine.SpawnAs("user.exe", simulated.User).Host.Files
	for _, folder := range []string{
		`C:\k`, `C:\Program Files\containerd`, `C:\Program Files\containerd\bin`, `C:\etc`, `C:\etc\kubernetes`, `C:\etc\kubernetes\manifests`,
		`C:\var`, `C:\var\lib`, `C:\var\lib\kubelet`, `C:\var\log`, `C:\var\log\pods`, `C:\usr`, `C:\usr\libexec\kubernetes\kubelet-plugins\volume\exec`,
	} {
		_, file := files.Create(folder+`\planted.dll`, host.CreateNew)
		made := files.NewFolder(folder+`\planted`, "")
		if !errors.Is(file, host.ErrPermission) || !errors.Is(made, host.ErrPermission) {
			t.Errorf("%s: a file: %v, a folder: %v", folder, file, made)
		}
	}
	results, err := l.join()
	nothing(t, results, err)
}

func TestAFolderOfAnOrdinaryAccountIsRefused(t *testing.T) {
	for name, plant := range map[string]func(admin, user host.Files) error{
		"the folder": func(_, user host.Files) error { return user.NewFolder(`C:\k`, "") },
		"a file in it": func(admin, user host.Files) error {
			file, err := host.WriteFile(nil), admin.MakeFolder(`C:\k`)
			if err == nil {
				file, err = user.Create(`C:\k\version.dll`, host.CreateNew)
			}
			if err == nil {
				err = file.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if err := plant(l.Machine.Process("setup").Files, l.Machine.SpawnAs("user.exe", simulated.User).Host.Files); err != nil {
				t.Fatal(err)
			}
			if _, err := l.join(); err == nil || !strings.Contains(err.Error(), "ordinary account") || !strings.Contains(err.Error(), `C:\k`) {
				t.Errorf("got %v", err)
			}
		})
	}
}
