package custody_test

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/custody"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	programData = `C:\ProgramData`
	his         = programData + `\his` // a folder of the attacker
	open        = access.SafeFolder + "(A;OICI;FA;;;BU)"
)

// node is a machine with its attacker: an ordinary user, who may make folders in C:\ProgramData.
type node struct {
	*simulated.Machine
	admin platform.Files // without custody
	user  *simulated.Process
}

func newNode(t *testing.T) *node {
	t.Helper()
	m := simulated.New(simulated.Options{Preset: simulated.Minimal})
	t.Cleanup(m.Close)
	n := &node{Machine: m, admin: m.Process("swdt").Files, user: m.SpawnAs("user.exe", simulated.User)}
	must(t, n.user.Platform.Files.MakeFolder(his))
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isForeign(err error) bool {
	_, ok := errors.AsType[*custody.ForeignError](err)
	return ok
}

// withoutLists is a file system that keeps no access lists, as Wine's.
type withoutLists struct{ platform.Files }

func (withoutLists) KeepsACL() bool { return false }

// withList reports a list for one file that the simulated machine cannot set.
type withList struct {
	platform.Files
	id   platform.FileID
	sddl string
}

func (w withList) ACL(path string) (string, error) {
	if info, err := w.Stat(path); err != nil || info.ID == w.id {
		return w.sddl, err
	}
	return w.Files.ACL(path)
}

// Each root is refused by one rule alone, except the first, and moved aside.
func TestARootThatSwdtHasNotMadeIsMovedAside(t *testing.T) {
	for name, plant := range map[string]func(*testing.T, *node) platform.Files{
		"a user made it": func(t *testing.T, n *node) platform.Files {
			must(t, n.user.Platform.Files.MakeFolder(layout.Root))
			return n.admin
		},
		// He may still have a handle to it with every right.
		"a user made it, and an administrator restricted it": func(t *testing.T, n *node) platform.Files {
			must(t, n.user.Platform.Files.MakeFolder(layout.Root))
			must(t, n.admin.SetACL(layout.Root, strings.Replace(access.SafeFolder, "O:SY", "O:BA", 1)))
			return n.admin
		},
		// A user gets into it as soon as C:\ProgramData has its usual list again.
		"it inherits from C:\\ProgramData": func(t *testing.T, n *node) platform.Files {
			must(t, n.admin.SetACL(programData, access.SafeFolder))
			must(t, n.admin.NewFolder(layout.Root, strings.Replace(access.SafeFolder, "D:P", "D:", 1)))
			return n.admin
		},
		"every user may change it": func(t *testing.T, n *node) platform.Files {
			must(t, n.admin.NewFolder(layout.Root, open))
			return n.admin
		},
		// A conditional entry may give a user every right.
		"its list has an entry of an unknown kind": func(t *testing.T, n *node) platform.Files {
			must(t, n.admin.NewFolder(layout.Root, access.SafeFolder))
			info, err := n.admin.Stat(layout.Root)
			must(t, err)
			return withList{n.admin, info.ID, access.SafeFolder + "(XA;OICI;FA;;;WD;(Member_of{BU}))"}
		},
		// An administrator has given it to SYSTEM, but a user can still change what it points to.
		"a user made it a junction": func(t *testing.T, n *node) platform.Files {
			must(t, n.user.Junction(layout.Root, his))
			must(t, n.admin.SetACL(layout.Root, access.SafeFolder))
			return n.admin
		},
		"a user made it a file": func(t *testing.T, n *node) platform.Files {
			w, err := n.user.Platform.Files.Create(layout.Root, platform.CreateNew)
			must(t, err)
			must(t, w.Close())
			return withoutLists{n.admin}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			all := plant(t, n)
			planted, err := n.admin.Stat(layout.Root)
			must(t, err)
			if _, err := custody.Files(all).Stat(layout.LockFile); !isForeign(err) {
				t.Errorf("a file below it: %v, want a ForeignError", err)
			}
			movedTo, err := custody.Secure(all)
			must(t, err)
			if aside, err := n.admin.Stat(movedTo); err != nil || aside.ID != planted.ID {
				t.Errorf("%q is not the root that was there: %v", movedTo, err)
			}
			checkSafe(t, n, layout.Root)
		})
	}
}

// checkSafe fails unless a file or folder has the owner and the list that swdt gives.
// A Windows may keep its program data on another drive (FolderLocations in answer files). Then there is no
// C:\ProgramData, and every user may make it, since every user may make folders on C:.
func TestProgramDataElsewhere(t *testing.T) {
	elsewhere := func(t *testing.T) *node {
		n := newNode(t)
		must(t, n.admin.Rename(programData, `C:\Windows\elsewhere`, false))
		return n
	}
	t.Run("it is missing", func(t *testing.T) {
		n := elsewhere(t)
		if moved, err := custody.Secure(n.admin); err != nil || moved != "" {
			t.Fatalf("Secure: %q, %v", moved, err)
		}
		checkSafe(t, n, layout.Root)
		if err := n.user.Platform.Files.MakeFolder(programData + `\mine`); err == nil {
			t.Error("a user may make a folder in it")
		}
	})
	t.Run("a user has made it", func(t *testing.T) {
		n := elsewhere(t)
		must(t, n.user.Platform.Files.MakeFolder(programData))
		_, err := custody.Secure(n.admin)
		if foreign, ok := errors.AsType[*custody.ForeignError](err); !ok || foreign.Path != programData {
			t.Errorf("Secure: %v", err)
		}
		if err := n.user.Platform.Files.MakeFolder(layout.Root); err != nil {
			t.Errorf("the root is there: %v", err)
		}
	})
	t.Run("a user may replace what is in it", func(t *testing.T) {
		n := newNode(t)
		must(t, n.admin.SetACL(programData, "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301ff;;;BU)"))
		if _, err := custody.Secure(n.admin); !isForeign(err) {
			t.Errorf("Secure: %v", err)
		}
	})
}

func checkSafe(t *testing.T, n *node, path string) {
	t.Helper()
	sddl, err := n.admin.ACL(path)
	must(t, err)
	list, err := access.Parse(sddl)
	if err != nil || list.Owner != access.System || !list.Protected || !list.Exclusive() {
		t.Errorf("%s has the list %s", path, sddl)
	}
}

func TestARootOfSwdtStays(t *testing.T) {
	n := newNode(t)
	_, err := custody.Secure(n.admin)
	must(t, err)
	checkSafe(t, n, layout.Root)
	n.ForgetOperations()
	if movedTo, err := custody.Secure(n.admin); movedTo != "" || err != nil || len(n.Operations()) > 0 {
		t.Errorf("the second Secure = %q, %v, and did %v", movedTo, err, n.Operations())
	}
}

// Wine invents access lists, which show nothing.
func TestWithoutAccessListsARootIsUsed(t *testing.T) {
	n := newNode(t)
	must(t, n.user.Platform.Files.MakeFolder(layout.Root))
	if movedTo, err := custody.Secure(withoutLists{n.admin}); movedTo != "" || err != nil {
		t.Errorf("Secure = %q, %v", movedTo, err)
	}
}

// A user who makes the root again each time is refused in the end. A root that he keeps open cannot be moved.
func TestARootThatCannotBeSecuredIsRefused(t *testing.T) {
	t.Run("made again each time", func(t *testing.T) {
		n := newNode(t)
		n.Interleave(func(simulated.Operation) { _ = n.user.Platform.Files.MakeFolder(layout.Root) })
		if _, err := custody.Secure(n.admin); !isForeign(err) {
			t.Errorf("Secure = %v, want a ForeignError", err)
		}
	})
	t.Run("kept open", func(t *testing.T) {
		n := newNode(t)
		must(t, n.user.Platform.Files.MakeFolder(layout.Root))
		_, err := n.user.Hold(layout.Root, access.ReadData, true)
		must(t, err)
		if _, err := custody.Secure(n.admin); !isForeign(err) || errors.Unwrap(err) == nil {
			t.Errorf("Secure = %v, want a ForeignError with the cause", err)
		}
	})
}

// Before this swdt renames a user's root, another swdt replaces it: the new root must not be moved aside.
func TestARootThatAnotherSwdtMadeMeanwhileStays(t *testing.T) {
	n := newNode(t)
	must(t, n.user.Platform.Files.MakeFolder(layout.Root))
	var others platform.FileInfo
	n.Interleave(func(op simulated.Operation) {
		if op.Kind != simulated.OpRename {
			return
		}
		n.Interleave(nil)
		if movedTo, err := custody.Secure(n.Process("other").Files); movedTo == "" || err != nil {
			t.Errorf("the other Secure = %q, %v", movedTo, err)
		}
		var err error
		others, err = n.admin.Stat(layout.Root)
		must(t, err)
	})
	movedTo, err := custody.Secure(n.admin)
	now, statErr := n.admin.Stat(layout.Root)
	if movedTo != "" || err != nil || statErr != nil || now.ID != others.ID {
		t.Errorf("Secure = %q, %v; the other's root stays: %t, %v", movedTo, err, now.ID == others.ID, statErr)
	}
}

// uses returns every operation with a file. Those that make a file close it.
func uses(f platform.Files, path string) map[string]func() error {
	made := func(w io.Closer, err error) error {
		if err != nil {
			return err
		}
		return w.Close()
	}
	return map[string]func() error{
		"Stat":        func() error { _, err := f.Stat(path); return err },
		"List":        func() error { _, err := f.List(path); return err },
		"Open":        func() error { return made(f.Open(path)) },
		"Create":      func() error { return made(f.Create(path, platform.CreateTruncate)) },
		"NewFile":     func() error { return made(f.NewFile(path, "")) },
		"NewFolder":   func() error { return f.NewFolder(path, "") },
		"MakeFolder":  func() error { return f.MakeFolder(path) },
		"Rename":      func() error { return f.Rename(path, programData+`\away`, false) },
		"Rename to":   func() error { return f.Rename(his, path, true) },
		"Remove":      func() error { return f.Remove(path) },
		"SetModified": func() error { return f.SetModified(path, time.Unix(0, 0)) },
		"ACL":         func() error { _, err := f.ACL(path); return err },
		"SetACL":      func() error { return f.SetACL(path, access.SafeFile) },
		"Lock":        func() error { _, err := f.Lock(path, nil); return err },
	}
}

// A user who may change a folder below the root, or has made it a link, could exchange whatever swdt reads there, and
// have swdt write, or remove, in a folder of his choice. This includes a file that does not exist yet.
func TestNothingIsUsedInAFolderOfAnotherAccount(t *testing.T) {
	for name, plant := range map[string]func(*testing.T, *node){
		"every user may change it": func(t *testing.T, n *node) {
			must(t, n.admin.SetACL(layout.Agents, open))
		},
		"a user owns it": func(t *testing.T, n *node) {
			must(t, n.admin.SetACL(layout.Agents, "O:"+simulated.User))
		},
		// He made it in a root of his, which an administrator then gave to SYSTEM, with all that was in it.
		"a user made it a junction": func(t *testing.T, n *node) {
			must(t, n.admin.Remove(layout.Agents))
			must(t, n.admin.SetACL(layout.Root, open))
			must(t, n.user.Junction(layout.Agents, his))
			must(t, n.admin.SetACL(layout.Root, access.SafeFolder))
			must(t, n.admin.SetACL(layout.Agents, access.SafeFolder))
		},
	} {
		for _, path := range []string{layout.Agents + `\file`, layout.Agents + `\folder\file`} {
			for _, use := range slices.Sorted(maps.Keys(uses(nil, path))) {
				t.Run(name+"/"+use+" "+path, func(t *testing.T) {
					n := newNode(t)
					files := custody.Files(n.admin)
					must(t, files.MakeFolder(layout.Agents))
					plant(t, n)
					if err := uses(files, path)[use](); !isForeign(err) {
						t.Errorf("got %v, want a ForeignError", err)
					}
				})
			}
		}
	}
}

// A file of a user, or a link, is not used either, but it can be examined and removed. A file that an administrator
// made, with the list of its folder, is used.
func TestAFileOfAnotherAccountIsNotUsed(t *testing.T) {
	for name, plant := range map[string]func(*testing.T, *node, string){
		"an administrator made it": func(t *testing.T, n *node, path string) {
			w, err := n.admin.Create(path, platform.CreateNew)
			must(t, err)
			must(t, w.Close())
		},
		"every user may read it": func(t *testing.T, n *node, path string) {
			must(t, n.admin.NewFolder(path, open))
		},
		"a user made it a junction": func(t *testing.T, n *node, path string) {
			must(t, n.admin.SetACL(layout.Root, open))
			must(t, n.user.Junction(path, his))
			must(t, n.admin.SetACL(layout.Root, access.SafeFolder))
			must(t, n.admin.SetACL(path, access.SafeFolder))
		},
	} {
		for use, refused := range map[string]bool{"Stat": true, "List": true, "Open": true, "Create": true,
			"MakeFolder": true, "Rename": true, "SetModified": true, "SetACL": true, "Lock": true,
			"NewFile": false, "NewFolder": false, "Remove": false, "ACL": false} {
			t.Run(name+"/"+use, func(t *testing.T) {
				n := newNode(t)
				_, err := custody.Secure(n.admin)
				must(t, err)
				plant(t, n, layout.LockFile)
				err = uses(custody.Files(n.admin), layout.LockFile)[use]()
				if want := refused && name != "an administrator made it"; isForeign(err) != want {
					t.Errorf("got %v, refused: %t", err, want)
				}
				if (use == "Remove" || use == "ACL") && err != nil {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// No file or folder inherits its list, so an administrator who opens one folder opens no other.
func TestWhatSwdtMakesIsRestrictedFromTheBeginning(t *testing.T) {
	for _, use := range []string{"Create", "NewFile", "NewFolder", "MakeFolder", "Lock"} {
		n := newNode(t)
		files := custody.Files(n.admin)
		const path = layout.Agents + `\x`
		must(t, files.MakeFolder(layout.Agents))
		must(t, uses(files, path)[use]())
		checkSafe(t, n, layout.Root)
		checkSafe(t, n, layout.Agents)
		checkSafe(t, n, path)
	}
}

// However a path is written, a root of another account is refused, and what is beside it is not.
func TestEveryNameOfAPathIsJudged(t *testing.T) {
	n := newNode(t)
	must(t, n.user.Platform.Files.MakeFolder(layout.Root))
	files := custody.Files(n.admin)
	for path, below := range map[string]bool{
		`C:\ProgramData\swdt`:           true,
		`C:\ProgramData\swdt\x`:         true,
		`c:/programdata/SWDT/x`:         true,
		`C:\\ProgramData\\swdt\\x`:      true,
		`C:\ProgramData\swdt.\x`:        true,
		`C:\ProgramData\swdt. .\x`:      true,
		`\\?\C:\ProgramData\swdt\x`:     true,
		`C:\ProgramData\his\..\swdt\x`:  true,
		`C:\ProgramData\his\..\swdt`:    true,
		`C:\ProgramData\swdt\x\..`:      true,
		`C:\ProgramData`:                false,
		`C:\ProgramData\swdt2\x`:        false,
		`C:\ProgramData\swdt\..`:        false,
		`C:\ProgramData\swdt\..\his`:    false,
		`C:\ProgramData\his\swdt\x`:     false,
		`C:\ProgramData\swdt\..\..\k\x`: false,
	} {
		if _, err := files.Stat(path); isForeign(err) != below {
			t.Errorf("%s: got %v, refused: %t", path, err, below)
		}
	}
}
