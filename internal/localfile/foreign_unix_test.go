//go:build unix

package localfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// The attacker is another account of this machine, who can write what a case lets all accounts write.
func TestCheckForeign(t *testing.T) {
	base := t.TempDir()
	tests := map[string]struct {
		make  func(folder string) error
		check string // below the folder
		at    string // what another account can change, below the folder; "": nothing
	}{
		"your own file":           {func(string) error { return nil }, "a/b/file", ""},
		"a file for everyone":     {func(f string) error { return os.Chmod(f+"/a/b/file", 0o666) }, "a/b/file", "a/b/file"},
		"its folder for everyone": {func(f string) error { return os.Chmod(f+"/a/b", 0o777) }, "a/b/file", "a/b"},
		"a folder above":          {func(f string) error { return os.Chmod(f+"/a", 0o777) }, "a/b/file", "a"},
		"your own file in a folder like /tmp": {
			func(f string) error { return os.Chmod(f+"/a/b", 0o777|os.ModeSticky) }, "a/b/file", ""},
		"your own link to your own file": {func(f string) error { return os.Symlink("../a/./b", f+"/c/link") },
			"c/link/file", ""},
		"a link into a folder for everyone": {func(f string) error {
			return errors.Join(os.Symlink(f+"/a/b/file", f+"/c/link"), os.Chmod(f+"/a/b", 0o777))
		}, "c/link", "a/b"},
		"a link in a folder for everyone": {func(f string) error {
			return errors.Join(os.Symlink(f+"/a/b/file", f+"/c/link"), os.Chmod(f+"/c", 0o777))
		}, "c/link", "c"},
		"out of a link by ..": {func(f string) error {
			// As the system reads it, link/../file is a/file, and not c/file.
			return errors.Join(os.Symlink(f+"/a/b", f+"/c/link"), os.Symlink("link/../file", f+"/c/out"),
				os.WriteFile(f+"/a/file", nil, 0o600), os.Chmod(f+"/a/file", 0o666))
		}, "c/out", "a/file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(base, filepath.Base(t.Name()))
			if err := errors.Join(os.MkdirAll(folder+"/a/b", 0o700), os.Mkdir(folder+"/c", 0o700),
				os.WriteFile(folder+"/a/b/file", nil, 0o600), os.WriteFile(folder+"/c/file", nil, 0o600),
				test.make(folder)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(folder, test.check)
			err := localfile.CheckForeign(path)
			foreign, is := errors.AsType[*localfile.ForeignError](err)
			switch {
			case test.at == "" && err != nil, test.at != "" && !is:
				t.Errorf("the error is %v", err)
			case is && (foreign.Path != filepath.Join(folder, test.at) || foreign.File != path):
				t.Errorf("it names %s: %v", foreign.Path, err)
			}
		})
	}
}

func TestCheckForeignOfWhatIsNotThere(t *testing.T) {
	folder := t.TempDir()
	if err := localfile.CheckForeign(filepath.Join(folder, "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	loop := filepath.Join(folder, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	if err := localfile.CheckForeign(loop); err == nil {
		t.Error("a link to itself is accepted")
	}
}

// Only root can give a file to another account.
func TestAFileOfAnotherAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make files of other accounts")
	}
	const other, caller = 4242, 4343
	folder := t.TempDir()
	mine := filepath.Join(folder, "mine")
	theirs := filepath.Join(mine, "theirs")
	link := filepath.Join(mine, "link")
	if err := errors.Join(os.Mkdir(mine, 0o700), os.WriteFile(theirs, nil, 0o600), os.Chown(theirs, other, other),
		os.WriteFile(filepath.Join(mine, "file"), nil, 0o600), os.Symlink("file", link),
		os.Lchown(link, other, other)); err != nil {
		t.Fatal(err)
	}
	expect := func(what, path string, foreign bool) {
		t.Helper()
		if _, is := errors.AsType[*localfile.ForeignError](localfile.CheckForeign(path)); is != foreign {
			t.Errorf("%s: refused %t, want %t", what, is, foreign)
		}
	}
	expect("a file of another account", theirs, true)
	expect("a link of another account in your folder", link, false)
	if err := os.Chmod(mine, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	expect("a link of another account in a folder like /tmp", link, true)
	if err := errors.Join(os.Chmod(mine, 0o700), os.Chown(mine, other, other)); err != nil {
		t.Fatal(err)
	}
	expect("your file in a folder of another account", filepath.Join(mine, "file"), true)
	if err := errors.Join(os.Chown(mine, caller, caller), os.Chmod(mine, 0o755)); err != nil {
		t.Fatal(err)
	}
	expect("without sudo, a folder of an account", filepath.Join(mine, "file"), true)
	t.Setenv("SUDO_UID", "4343")
	expect("a folder of the account that called sudo", filepath.Join(mine, "file"), false)
	if err := errors.Join(os.Chown(mine, 0, other), os.Chmod(mine, 0o775)); err != nil {
		t.Fatal(err)
	}
	expect("a folder for a group of others", filepath.Join(mine, "file"), true)
}
