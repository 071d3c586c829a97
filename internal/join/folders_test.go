package join_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// SYSTEM runs the programs in these folders, or obeys the configuration in them.
func TestNoOrdinaryAccountMayPutAFileWhereSYSTEMLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		files := l.Machine.SpawnAs("user.exe", simulated.User).Platform.Files
		for _, folder := range []string{
			`C:\k`, `C:\Program Files\containerd`, `C:\Program Files\containerd\bin`, `C:\etc`, `C:\etc\kubernetes`,
			`C:\etc\kubernetes\manifests`,
			`C:\var`, `C:\var\lib`, `C:\var\lib\kubelet`, `C:\var\log`, `C:\var\log\pods`, `C:\usr`,
			`C:\usr\libexec\kubernetes\kubelet-plugins\volume\exec`,
		} {
			_, file := files.Create(folder+`\planted.dll`, platform.CreateNew)
			made := files.NewFolder(folder+`\planted`, "")
			if !errors.Is(file, fault.ErrPermission) || !errors.Is(made, fault.ErrPermission) {
				t.Errorf("%s: a file: %v, a folder: %v", folder, file, made)
			}
		}
		results, err := l.join()
		nothing(t, results, err)
	})
}

func TestAFolderOfAnOrdinaryAccountIsRefused(t *testing.T) {
	for name, plant := range map[string]func(admin, user platform.Files) error{
		"the folder": func(_, user platform.Files) error { return user.NewFolder(`C:\k`, "") },
		"a file in it": func(admin, user platform.Files) error {
			file, err := platform.WriteFile(nil), admin.MakeFolder(`C:\k`)
			if err == nil {
				file, err = user.Create(`C:\k\version.dll`, platform.CreateNew)
			}
			if err == nil {
				err = file.Close()
			}
			return err
		},
	} {
		subtest(t, name, func(t *testing.T) {
			l := newLab(t)
			if err := plant(l.Machine.Process("setup").Files,
				l.Machine.SpawnAs("user.exe", simulated.User).Platform.Files); err != nil {
				t.Fatal(err)
			}
			switch _, err := l.join(); {
			case err == nil:
				t.Error("got no error, want one")
			case !strings.Contains(err.Error(), "ordinary account"):
				t.Errorf("err.Error() lacks %q:\n%s", "ordinary account", err.Error())
			case !strings.Contains(err.Error(), `C:\k`):
				t.Errorf("err.Error() lacks %q:\n%s; got %v", `C:\k`, err.Error(), err)
			}
		})
	}
}
