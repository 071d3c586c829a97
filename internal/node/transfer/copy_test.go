package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// tree writes files under a new folder, by their slash-separated names.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "tree")
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestAFolderThereAndBack(t *testing.T) {
	n := start(t)
	files := map[string][]byte{
		"kubelet.exe": content(3<<20, 1), "empty": {}, "sub/deep/log ä.txt": []byte("hello"),
	}
	root := tree(t, files)
	if err := os.Symlink("empty", filepath.Join(root, "link")); err != nil {
		t.Skip(err)
	}
	result, err := transfer.Upload(t.Context(), n.Node, root, `c:/in/new`, ui.Discard{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Files != 3:
		t.Fatalf("result.Files is %v, want 3", result.Files)
	case result.Skipped != 1:
		t.Fatalf("result.Skipped is %v, want 1", result.Skipped)
	case result.Unchanged != 0:
		t.Fatalf("result.Unchanged is %v, want 0", result.Unchanged)
	}
	for name, want := range files {
		got := n.Get(`C:\in\new\` + strings.ReplaceAll(name, "/", `\`))
		if got == nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes arrived", name, len(got))
		}
	}
	if again, err := transfer.Upload(t.Context(), n.Node, root+"/.", `C:\in\`, ui.Discard{}); err != nil ||
		again.Unchanged != 0 {
		t.Fatalf("into a folder: %+v, %v", again, err)
	}
	switch again, err := transfer.Upload(t.Context(), n.Node, root, `C:\in`, ui.Discard{}); {
	case err != nil:
		t.Fatalf("once more: %v", err)
	case again.Unchanged != 3:
		t.Fatalf("once more: again.Unchanged is %v, want 3", again.Unchanged)
	case again.SentBytes != 0:
		t.Fatalf("once more: again.SentBytes is %v, want 0", again.SentBytes)
	}

	back := t.TempDir()
	result, err = transfer.Download(t.Context(), n.Node, `C:\in\tree`, back, ui.Discard{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Files != 3:
		t.Fatalf("result.Files is %v, want 3", result.Files)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(back, "tree", filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes came back, %v", name, len(got), err)
		}
	}
	again, err := transfer.Download(t.Context(), n.Node, `C:\in\tree`, back, ui.Discard{})
	switch {
	case err != nil:
		t.Fatalf("once more: %v", err)
	case again.Unchanged != 3:
		t.Fatalf("once more: again.Unchanged is %v, want 3", again.Unchanged)
	case again.SentBytes != 0:
		t.Fatalf("once more: again.SentBytes is %v, want 0", again.SentBytes)
	}
}

func TestADownloadIsContinued(t *testing.T) {
	n, want := start(t), content(6<<20, 1)
	n.Put(`C:\k\kubelet.exe`, want)
	file := local(t, want)
	for name, part := range map[string][]byte{"half": want[:3<<20], "longer": append(bytes.Clone(want), 1)} {
		to := filepath.Join(t.TempDir(), "kubelet.exe")
		if err := os.WriteFile(to+".swdt-"+file.SHA256[:12]+".part", part, 0o600); err != nil {
			t.Fatal(err)
		}
		result, err := transfer.Download(t.Context(), n.Node, `C:\k\kubelet.exe`, to, ui.Discard{})
		got, readErr := os.ReadFile(to)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		case readErr != nil:
			t.Fatalf("%s: %v", name, readErr)
		case !bytes.Equal(got, want):
			t.Fatalf("%s: got differs from want", name)
		}
		if name == "half" && result.SentBytes != 3<<20 {
			t.Errorf("%s: received %d bytes", name, result.SentBytes)
		}
	}
}

func TestAPartOfAnotherFileIsThrownAway(t *testing.T) {
	n, want := start(t), content(1<<20, 1)
	n.Put(`C:\k\kubelet.exe`, want)
	to := filepath.Join(t.TempDir(), "kubelet.exe")
	part := to + ".swdt-" + local(t, want).SHA256[:12] + ".part"
	if err := os.WriteFile(part, content(1000, 2), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := transfer.Download(t.Context(), n.Node, `C:\k\kubelet.exe`, to, ui.Discard{})
	switch got, readErr := os.ReadFile(to); {
	case err != nil:
		t.Fatal(err)
	case readErr != nil:
		t.Fatal(readErr)
	case !bytes.Equal(got, want):
		t.Fatal("got differs from want")
	}
}

func TestARemoteFileThatChangesMeanwhileIsNamed(t *testing.T) {
	n := start(t)
	n.Put(`C:\k\kubelet.log`, content(1<<20, 1))
	n.OnCall(func(method string) error {
		if strings.HasSuffix(method, "Files/Read") {
			n.Put(`C:\k\kubelet.log`, content(1<<20, 2))
		}
		return nil
	})
	to := filepath.Join(t.TempDir(), "kubelet.log")
	_, err := transfer.Download(t.Context(), n.Node, `C:\k\kubelet.log`, to, ui.Discard{})
	var changed *transfer.RemoteChangedError
	if !errors.As(err, &changed) {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, changed)
	}
	nothingIn(t, filepath.Dir(to))
}

func nothingIn(t *testing.T, folder string) {
	t.Helper()
	if left, err := filepath.Glob(folder + "/*"); err != nil || len(left) != 0 {
		t.Fatalf("left %v, %v", left, err)
	}
}

func TestOfALogThatGrowsComesWhatItHadAtFirst(t *testing.T) {
	n, want := start(t), content(1<<20, 1)
	n.Put(`C:\k\kubelet.log`, want)
	n.OnCall(func(method string) error {
		if strings.HasSuffix(method, "Files/Read") {
			n.Put(`C:\k\kubelet.log`, append(bytes.Clone(want), "and more"...))
		}
		return nil
	})
	to := filepath.Join(t.TempDir(), "kubelet.log")
	if _, err := transfer.Download(t.Context(), n.Node, `C:\k\kubelet.log`, to, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

func TestTwoCopiesOfOneFileAtOnce(t *testing.T) {
	n, want := start(t), content(3<<20, 1)
	file := local(t, want)
	for range 5 {
		n.Put(`C:\k\kubelet.exe`, want)
		folder := t.TempDir()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, err := transfer.Download(t.Context(), n.Node, `C:\k\kubelet.exe`, folder,
					ui.Discard{}); err != nil {
					t.Errorf("from the node: %v", err)
				}
			})
		}
		both.Wait()
		if got, err := os.ReadFile(filepath.Join(folder, "kubelet.exe")); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
			t.Fatalf("left %v, %v", left, err)
		}
		if err := n.Files.Remove(`C:\k\kubelet.exe`); err != nil {
			t.Fatal(err)
		}
		failed := make([]error, 2)
		for i := range failed {
			both.Go(func() {
				_, failed[i] = transfer.Upload(t.Context(), n.Node, file.Path, `C:\k\kubelet.exe`, ui.Discard{})
			})
		}
		both.Wait()
		if failed[0] != nil && failed[1] != nil {
			t.Fatalf("neither went to the node: %v; %v", failed[0], failed[1])
		}
		if !bytes.Equal(n.Get(`C:\k\kubelet.exe`), want) {
			t.Fatalf("the node has another file after %v", failed)
		}
	}
}

func TestDownloadChoosesTheLocalPath(t *testing.T) {
	n := start(t)
	n.Put(`C:\k\sub\f.txt`, []byte("hello"))
	for name, c := range map[string]struct {
		remote, local string // below a folder with the folder "there" and the file "file"
		lands         string // empty: refused
	}{
		"as a new file":                  {`C:\k\sub\f.txt`, "new", "new"},
		"over a file":                    {`C:\k\sub\f.txt`, "file", "file"},
		"into a folder":                  {`C:\k\sub\f.txt`, "there", "there/f.txt"},
		"into a folder with a slash":     {`C:\k\sub\f.txt`, "there/", "there/f.txt"},
		"into a new folder":              {`C:\k\sub\f.txt`, "new/", "new/f.txt"},
		"into new folders":               {`C:\k\sub\f.txt`, "new/er/", "new/er/f.txt"},
		"as a file of no folder":         {`C:\k\sub\f.txt`, "new/f.txt", ""},
		"a folder as a new one":          {`C:\k\sub`, "new", "new/f.txt"},
		"a folder with a slash":          {`C:\k\sub\`, "new", "new/f.txt"},
		"a folder into a folder":         {`C:\k\sub`, "there", "there/sub/f.txt"},
		"a folder into a new folder":     {`C:\k\sub`, "new/", "new/sub/f.txt"},
		"a folder over a file":           {`C:\k\sub`, "file", ""},
		"a drive has no name to take":    {`C:\`, "there", ""},
		"a file where its folder stands": {`C:\k\sub\f.txt`, "taken", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, map[string][]byte{"there/other": nil, "file": []byte("old"), "taken/f.txt/x": nil})
			to := filepath.Join(root, filepath.FromSlash(c.local))
			if strings.HasSuffix(c.local, "/") {
				to += string(filepath.Separator)
			}
			_, err := transfer.Download(t.Context(), n.Node, c.remote, to, ui.Discard{})
			if c.lands == "" {
				if err == nil {
					t.Error("copied")
				}
				return
			}
			path := filepath.Join(root, filepath.FromSlash(c.lands))
			got, readErr := os.ReadFile(path)
			switch {
			case err != nil:
				t.Fatal(err)
			case readErr != nil:
				t.Fatal(readErr)
			case string(got) != "hello":
				t.Fatalf("got is %q, want %q", string(got), "hello")
			}
			if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}

func TestUploadNeverTouchesAUsersOwnPart(t *testing.T) {
	n, mine := start(t), []byte("not swdt's")
	n.Put(`C:\k\kubelet.exe.part`, mine)
	if _, err := transfer.Upload(t.Context(), n.Node, local(t, content(100, 1)).Path, `C:\k\kubelet.exe`,
		ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(n.Get(`C:\k\kubelet.exe.part`), mine) {
		t.Fatal("a file of the user's is gone")
	}
}

// A program that has the destination open for a moment delays a copy; one that keeps it open is named.
func TestACopyOverAnOpenFile(t *testing.T) {
	const path = `C:\etc\cni\net.d\10-lab.conflist`
	for name, test := range map[string]struct {
		busy    int // renames that fail
		reason  error
		renames int // at least, if it stays open
		fails   bool
	}{
		"for a moment":    {busy: 2, reason: fault.ErrPermission, renames: 3},
		"open by another": {busy: 4, reason: fault.ErrInUse, renames: 5},
		"it stays open":   {busy: 99, reason: fault.ErrInUse, renames: 5, fails: true},
		"the disk fails":  {busy: 99, reason: fault.ErrDiskFull, renames: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			n, old, file := start(t), []byte("old"), local(t, content(100, 1))
			n.Put(path, old)
			renames := 0
			n.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
				if op.Kind != simulated.OpRename || op.Phase != simulated.Before || op.Target != path {
					return simulated.Continue()
				}
				if renames++; renames <= test.busy {
					return simulated.Fail(test.reason)
				}
				return simulated.Continue()
			})
			_, err := transfer.Upload(t.Context(), n.Node, file.Path, path, ui.Discard{})
			n.Machine.OnOperation(nil)
			if test.fails != errors.Is(err, test.reason) || !test.fails && err != nil {
				t.Errorf("the error is %v", err)
			}
			if renames < test.renames || renames > test.renames && !errors.Is(err, fault.ErrInUse) {
				t.Errorf("%d renames, want %d", renames, test.renames)
			}
			if unchanged := bytes.Equal(n.Get(path), old); unchanged != test.fails {
				t.Errorf("the old file is there: %v", unchanged)
			}
		})
	}
}

func TestBadCopies(t *testing.T) {
	n := start(t)
	file := local(t, []byte("x")).Path
	for _, remote := range []string{`relative\x`, `\\server\share\x`, `C:\con`, `C:\a\..\..\b`} {
		if _, err := transfer.Upload(t.Context(), n.Node, file, remote, ui.Discard{}); err == nil {
			t.Errorf("copied to %s", remote)
		}
		if _, err := transfer.Download(t.Context(), n.Node, remote, t.TempDir(), ui.Discard{}); err == nil {
			t.Errorf("copied from %s", remote)
		}
	}
	if _, err := transfer.Upload(t.Context(), n.Node, file+".none", `C:\x`, ui.Discard{}); !errors.Is(
		err, os.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, os.ErrNotExist)
	}
	if _, err := transfer.Download(t.Context(), n.Node, `C:\none`, t.TempDir(), ui.Discard{}); !errors.Is(
		err, os.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, os.ErrNotExist)
	}
}
