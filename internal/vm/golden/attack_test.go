package golden_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/golden"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
)

// Another user who can change the folder of images would control the VMs.
func TestAFolderOfOthersIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the folders of a user have access lists there")
	}
	root := filepath.Join(t.TempDir(), "images")
	check(t, os.Mkdir(root, 0o700))
	check(t, os.Chmod(root, 0o777))
	var unsafe *vm.UnsafeError
	if _, err := golden.Open(root, nil); !errors.As(err, &unsafe) {
		t.Errorf("got %v", err)
	}
}

// A VM whose record cannot be read may use any image: they are listed, and none is removed.
func TestADamagedVMKeepsAllImages(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	synctest.Test(t, func(t *testing.T) {
		made, err := p.machines.Create(t.Context(), d, ui.Discard{})
		check(t, err)
		check(t, os.WriteFile(filepath.Join(made.Folder, "machine.json"), []byte("{"), 0o600))
		list, err := p.List(t.Context())
		check(t, err)
		if len(list.Images) != 1 || !strings.Contains(list.Images[0].Reason, "is damaged") {
			t.Errorf("%+v", list)
		}
		var damaged *vm.DamagedError
		if err := p.Remove(t.Context(), list.Images[0].Key, ui.Discard{}); !errors.As(err, &damaged) {
			t.Errorf("remove: %v", err)
		}
		p.only(t, list.Images[0].Key)
	})
}

// A manifest that leads out of its folder, or that is of another image, is damaged, and is only removed.
func TestADamagedImageIsNotUsed(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	secret := filepath.Join(p.root, "secret")
	synctest.Test(t, func(t *testing.T) {
		report, err := p.build(t, d)
		check(t, err)
		check(t, os.WriteFile(secret, nil, 0o600))
		path := filepath.Join(report.Image.Folder, "manifest.json")
		good, err := os.ReadFile(path)
		check(t, err)
		check(t, os.Chmod(path, 0o600))
		for name, replace := range map[string][]string{
			"a path": {`"golden.disk"`, `"../secret"`}, "no disk": {`"golden.disk"`, `""`},
			"a missing file": {`"golden.disk"`, `"gone"`}, "another key": {report.Image.Key, "0123456789abcdef"},
			"a later form": {`"version": 1`, `"version": 2`}, "no JSON": {"{", "["},
		} {
			bad := strings.Replace(string(good), replace[0], replace[1], 1)
			if bad == string(good) {
				t.Fatalf("%s: the manifest is unchanged", name)
			}
			check(t, os.WriteFile(path, []byte(bad), 0o600))
			if _, err := p.build(t, d); err == nil || !strings.Contains(err.Error(), "is damaged") {
				t.Errorf("%s: build: %v", name, err)
			}
			if _, err := p.machines.Create(t.Context(), d, ui.Discard{}); err == nil {
				t.Errorf("%s: a VM was made", name)
			}
			list, err := p.List(t.Context())
			check(t, err)
			if len(list.Images) != 1 {
				t.Fatalf("%s: %d images, want 1: %+v", name, len(list.Images), list)
			}
			if is := list.Images[0]; is.State != golden.Damaged || is.Reason == "" {
				t.Errorf("%s: state %s, reason %q; want %s with a reason", name, is.State, is.Reason, golden.Damaged)
			}
		}
		check(t, p.Remove(t.Context(), report.Image.Key, ui.Discard{}))
		p.only(t, "secret")
	})
}

// The text of a guest never uses more memory than a constant, and its marks do not depend on how
// it arrives.
func FuzzHeard(f *testing.F) {
	f.Add([]byte("BdsDxe\r\nSWDT stage=sshd begin\r\nSWDT exit=0\r\n"), 3)
	f.Add([]byte(strings.Repeat("SWDT exit=1 ", 1000)), 7)
	f.Add([]byte(strings.Repeat("SWDT exit=1\n", 2000)), 4096)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		if size < 1 || size > 1<<16 || len(text) > 1<<17 {
			t.Skip()
		}
		all, _ := golden.Heard(text, len(text)+1)
		marks, kept := golden.Heard(text, size)
		if diff := cmp.Diff(all, marks); diff != "" {
			t.Errorf("the marks differ:\n%s", diff)
		}
		if kept > 1<<13 || len(marks) > 1000 {
			t.Errorf("%d bytes and %d marks are kept", kept, len(marks))
		}
	})
}

func FuzzComputerName(f *testing.F) {
	for _, name := range []string{"win-1", "Größe", "123", "-", "a.very.long.name.of.a.node", "123456789012345678"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if vm.CheckName(name) != nil {
			t.Skip()
		}
		if err := answer.CheckComputerName(golden.ComputerName(name)); err != nil {
			t.Error(err)
		}
	})
}
