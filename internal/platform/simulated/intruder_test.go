package simulated_test

import (
	"errors"
	"io"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func put(files platform.Files, path, text string) error {
	w, err := files.Create(path, platform.CreateTruncate)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return errors.Join(err, w.Close())
}

func wanted(t *testing.T, what string, err error, allowed bool) {
	t.Helper()
	if allowed && err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if !allowed && !errors.Is(err, fault.ErrPermission) {
		t.Errorf("%s: got %v, want access denied", what, err)
	}
}

// The default access lists of Windows Server, as far as they affect an ordinary user.
func TestOrdinaryUserMayWriteOnlyInSomeFolders(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	files := m.SpawnAs("user.exe", simulated.User).Platform.Files
	for _, test := range []struct {
		folder         string
		files, folder2 bool
	}{
		{`C:`, false, true},
		{`C:\k`, false, false}, // as a join leaves it
		{`C:\ProgramData`, true, true},
		{`C:\ProgramData\ssh`, false, false},
		{`C:\Program Files`, false, false},
		{`C:\Windows\System32`, false, false},
		{`C:\Windows\Temp`, true, true},
		{`C:\Users\Administrator`, false, false},
	} {
		wanted(t, "a file in "+test.folder, put(files, test.folder+`\planted`, "x"), test.files)
		wanted(t, "a folder in "+test.folder, files.MakeFolder(test.folder+`\folder`), test.folder2)
	}
	_, err := files.Open(simulated.KubeletPath)
	wanted(t, "read the kubelet", err, true)
	_, err = files.List(`C:\Users\Administrator`)
	wanted(t, "look into the administrator's profile", err, false)
	wanted(t, "overwrite the kubelet", put(files, simulated.KubeletPath, "x"), false)
	wanted(t, "remove the kubelet", files.Remove(simulated.KubeletPath), false)
	wanted(t, "rename the kubelet", files.Rename(simulated.KubeletPath, `C:\k\other.exe`, false), false)
	wanted(t, "give a file away", files.SetACL(`C:\ProgramData\planted`, "O:BA"), false)
	wanted(t, "take the kubelet", files.SetACL(simulated.KubeletPath, "O:"+simulated.User), false)
}

func TestTheOwnerCanAlwaysChangeTheAccessList(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	user, admin := m.SpawnAs("user.exe", simulated.User).Platform.Files, m.Process("admin.exe").Files
	other := m.SpawnAs("other.exe", simulated.OtherUser).Platform.Files
	const path = `C:\ProgramData\theirs`
	if err := user.NewFolder(path, ""); err != nil {
		t.Fatal(err)
	}
	wanted(t, "another user's file in it", put(other, path+`\file`, "x"), true)
	wanted(t, "another user's file over it", put(user, path+`\file`, "x"), false)
	if err := admin.SetACL(path, "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"); err != nil {
		t.Fatal(err)
	}
	wanted(t, "a file in the restricted folder", put(user, path+`\more`, "x"), false)
	wanted(t, "the owner opens it again", user.SetACL(path, "D:P(A;OICI;FA;;;WD)"), true)
	wanted(t, "a file in the folder", put(user, path+`\more`, "x"), true)
}

// A handle that was opened before the access list was tightened keeps its rights.
func TestAHandleKeepsItsRights(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	user, admin := m.SpawnAs("user.exe", simulated.User), m.Process("admin.exe").Files
	const path = `C:\ProgramData\theirs`
	if err := user.Platform.Files.NewFolder(path, ""); err != nil {
		t.Fatal(err)
	}
	kept, err := user.Hold(path, access.WriteDAC|access.WriteData, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.SetACL(path, access.SafeFolder); err != nil {
		t.Fatal(err)
	}
	wanted(t, "a file by its path", put(user.Platform.Files, path+`\one`, "x"), false)
	wanted(t, "a file by the handle", kept.Add("one", "x"), true)
	wanted(t, "a rename by the handle", kept.Rename(`C:\ProgramData\else`), false)
	wanted(t, "the access list by the handle", kept.SetACL("D:P(A;OICI;FA;;;WD)"), true)
	wanted(t, "a file by its path, then", put(user.Platform.Files, path+`\two`, "x"), true)
	if _, err := user.Hold(`C:\Windows`, access.WriteDAC, false); !errors.Is(err, fault.ErrPermission) {
		t.Errorf("a handle on Windows: %v", err)
	}
}

func TestAHandleBelowAFolderKeepsItInItsPlace(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	user, admin := m.SpawnAs("user.exe", simulated.User), m.Process("admin.exe").Files
	const path = `C:\ProgramData\theirs`
	if err := put(user.Platform.Files, `C:\ProgramData\file`, "x"); err != nil {
		t.Fatal(err)
	}
	if err := user.Platform.Files.NewFolder(path, ""); err != nil {
		t.Fatal(err)
	}
	if err := put(user.Platform.Files, path+`\file`, "x"); err != nil {
		t.Fatal(err)
	}
	on, err := user.Hold(path+`\file`, access.ReadData, false)
	if err != nil {
		t.Fatal(err)
	}
	wanted(t, "move a folder with an open file", admin.Rename(path, path+"-moved", false), false)
	on.Close()
	on, err = user.Hold(path, access.ReadData, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Rename(path, path+"-moved", false); !errors.Is(err, fault.ErrInUse) {
		t.Errorf("move a folder that another process holds exclusively: %v", err)
	}
	on.Close()
	wanted(t, "move it", admin.Rename(path, path+"-moved", false), true)
}

func TestTheIntruderActsBetweenAnyTwoOperations(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	user, admin := m.SpawnAs("user.exe", simulated.User), m.Process("admin.exe").Files
	acts := 0
	m.Interleave(func(op simulated.Operation) {
		acts++
		if acts == 2 {
			if err := user.Junction(`C:\ProgramData\made`, `C:\Windows`); err != nil {
				t.Error(err)
			}
		}
	})
	_, before := admin.Stat(`C:\ProgramData\made`)
	info, err := admin.Stat(`C:\ProgramData\made`)
	switch {
	case !errors.Is(before, fault.ErrNotExist):
		t.Errorf("the error is %v, want %v", before, fault.ErrNotExist)
	case err != nil:
		t.Error(err)
	case !info.Link:
		t.Error("info.Link is false, want true")
	case acts != 2:
		t.Errorf("acts is %v, want 2", acts)
	}
}
