package winsetup_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/testing/winsetup"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
)

// run finds and runs the script of a CD, and returns its marks.
func run(t *testing.T, cd fs.FS, fail string, network bool) (marks []firstboot.Mark, ok bool) {
	t.Helper()
	m := winsetup.Machine{Drives: []winsetup.Drive{{Letter: "D", FS: fstest.MapFS{}}, {Letter: "E", FS: cd}}}
	script, err := winsetup.FindScript(m, firstboot.FileName)
	if err != nil {
		t.Fatal(err)
	}
	ok = script.Run(fail, network, func(line string) {
		mark, known := firstboot.ParseMark(line)
		if !known {
			t.Errorf("%q is no mark", line)
		}
		marks = append(marks, mark)
	})
	return marks, ok
}

func TestScriptReportsItsStages(t *testing.T) {
	for _, end := range []firstboot.End{firstboot.Stay, firstboot.ShutDown, firstboot.Generalize} {
		o := withDrivers(options(t))
		o.End = end
		marks, ok := run(t, configCD(t, o), "", false)
		stages := firstboot.Stages(firstboot.Options{
			OpenSSH: firstboot.Installer, OpenSSHFile: "openssh.msi", KeysFile: "authorized_keys", DriverFolder: "drivers",
			End: end, SysprepFile: "sysprep.xml",
		})
		var want []firstboot.Mark
		for _, stage := range stages {
			want = append(want, firstboot.Mark{Stage: stage, State: firstboot.Begun},
				firstboot.Mark{Stage: stage, State: firstboot.Passed})
		}
		want = append(want, firstboot.Mark{State: firstboot.Exited})
		if diff := cmp.Diff(want, marks); diff != "" || !ok {
			t.Errorf("%s: succeeded: %t (-want +got)\n%s", end, ok, diff)
		}
	}
}

// A required stage that fails ends the script with 1, and nothing is generalised.
func TestScriptFails(t *testing.T) {
	cd := configCD(t, options(t))
	o := options(t)
	o.OpenSSH = configcd.File{}
	online := configCD(t, o)
	if marks, ok := run(t, online, "", true); !ok {
		t.Errorf("with a network: %+v", marks)
	}
	for title, test := range map[string]struct {
		cd      fs.FS
		fail    string
		network bool
	}{
		"on demand":                    {cd, "openssh", true},
		"without its MSI":              {without(t, cd, "openssh.msi"), "", true},
		"a download without a network": {online, "", false},
	} {
		t.Run(title, func(t *testing.T) {
			marks, ok := run(t, test.cd, test.fail, test.network)
			last := marks[len(marks)-1]
			want := firstboot.Mark{State: firstboot.Exited, Code: 1, Text: "failed: openssh"}
			if diff := cmp.Diff(want, last); diff != "" || ok {
				t.Errorf("succeeded: %t (-want +got)\n%s", ok, diff)
			}
			for _, mark := range marks {
				if mark.Stage == "generalize" {
					t.Errorf("%+v after a failure", mark)
				}
			}
		})
	}
	marks, ok := run(t, without(t, configCD(t, withDrivers(options(t))), "drivers"), "", true)
	if !ok || marks[1].State != firstboot.Warned {
		t.Errorf("without drivers: %+v, %t: want a warning", marks[1], ok)
	}
}

// without returns the texts of a CD's root, except one file or folder.
func without(t *testing.T, cd fs.FS, name string) fs.FS {
	t.Helper()
	left := fstest.MapFS{}
	entries, err := fs.ReadDir(cd, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == name {
			continue
		}
		text, err := fs.ReadFile(cd, entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		left[entry.Name()] = &fstest.MapFile{Data: text}
	}
	return left
}

func TestKeysOfTheScript(t *testing.T) {
	o := options(t)
	o.Agent = configcd.File{FS: fstest.MapFS{"a.msi": {Data: []byte("msi")}}, Path: "a.msi"}
	m := winsetup.Machine{Drives: []winsetup.Drive{{Letter: "E", FS: configCD(t, o)}}}
	script, err := winsetup.FindScript(m, firstboot.FileName)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := script.Keys()
	if diff := cmp.Diff([]string{key(t)}, keys); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if _, err := winsetup.FindScript(m, "other.ps1"); err == nil || !strings.Contains(err.Error(), "other.ps1") {
		t.Errorf("a script that is on no drive: %v", err)
	}
}
