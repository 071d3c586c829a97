package localfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// The attacker is any account of this machine, who can write what a case lets all accounts write.
func TestCheckForeign(t *testing.T) {
	for name, test := range map[string]struct {
		open  string // what all can write, below the folder; "": nothing
		check string // below the folder
	}{
		"your own file":      {"", "a/b/file"},
		"a file for all":     {"a/b/file", "a/b/file"},
		"its folder for all": {"a/b", "a/b/file"},
		"a folder above":     {"a", "a/b/file"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := tempTree(t, "", "a", "a/b", "a/b/file")
			if err := errors.Join(os.MkdirAll(filepath.Join(folder, "a/b"), 0o700),
				os.WriteFile(filepath.Join(folder, "a/b/file"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			open := filepath.Join(folder, test.open)
			if test.open != "" {
				openToAll(t, open)
			}
			path := filepath.Join(folder, test.check)
			err := CheckForeign(path)
			foreign, is := errors.AsType[*ForeignError](err)
			switch {
			case test.open == "" && err != nil, test.open != "" && !is:
				t.Errorf("the error is %v", err)
			case is && (foreign.Path != open || foreign.File != path || strings.Contains(foreign.Why, "WD")):
				t.Errorf("it names %s: %v", foreign.Path, err)
			}
		})
	}
	if err := CheckForeign(filepath.Join(tempTree(t, ""), "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// tempTree returns a new folder. After the test, it removes what is at the paths below the folder: Wine lacks the call
// with which t.TempDir does that.
func tempTree(t *testing.T, paths ...string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "swdt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, path := range slices.Backward(paths) {
			if err := os.Remove(filepath.Join(folder, path)); err != nil {
				t.Error(err)
			}
		}
	})
	return folder
}

// openToAll gives all accounts all rights to a path.
func openToAll(t *testing.T, path string) {
	t.Helper()
	descriptor, err := windows.SecurityDescriptorFromString("D:P(A;OICI;FA;;;WD)")
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := descriptor.DACL()
	if err != nil {
		t.Fatal(err)
	}
	if err := windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, list, nil); err != nil {
		t.Fatal(err)
	}
}
