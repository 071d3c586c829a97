package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/transfer"
	"github.com/swdt-dev/swdt/internal/ui"
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
	if err != nil || result.Files != 3 || result.Skipped != 1 || result.Unchanged != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	for name, want := range files {
		got := n.Get(`C:\in\new\` + strings.ReplaceAll(name, "/", `\`))
		if got == nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes arrived", name, len(got))
		}
	}
	if again, err := transfer.Upload(t.Context(), n.Node, root+"/.", `C:\in\`, ui.Discard{}); err != nil || again.Unchanged != 0 {
		t.Fatalf("into a folder: %+v, %v", again, err)
	}
	if again, err := transfer.Upload(t.Context(), n.Node, root, `C:\in`, ui.Discard{}); err != nil || again.Unchanged != 3 || again.SentBytes != 0 {
		t.Fatalf("once more: %+v, %v", again, err)
	}

	back := t.TempDir()
	result, err = transfer.Download(t.Context(), n.Node, `C:\in\tree`, back, ui.Discard{})
	if err != nil || result.Files != 3 {
		t.Fatalf("%+v, %v", result, err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(back, "tree", filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes came back, %v", name, len(got), err)
		}
	}
	again, err := transfer.Download(t.Context(), n.Node, `C:\in\tree`, back, ui.Discard{})
	if err != nil || again.Unchanged != 3 || again.SentBytes != 0 {
		t.Fatalf("once more: %+v, %v", again, err)
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
		if err != nil || readErr != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: %+v, %v, %v", name, result, err, readErr)
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
	if got, readErr := os.ReadFile(to); err != nil || readErr != nil || !bytes.Equal(got, want) {
		t.Fatal(err, readErr)
	}
}

func TestAFileThatGrowsMeanwhileIsNamed(t *testing.T) {
	n := start(t)
	n.Put(`C:\k\kubelet.log`, content(1<<20, 1))
	n.OnCall(func(method string) error {
		if strings.HasSuffix(method, "Files/Read") {
			n.Put(`C:\k\kubelet.log`, content(1<<20+100, 1))
		}
		return nil
	})
	to := filepath.Join(t.TempDir(), "kubelet.log")
	_, err := transfer.Download(t.Context(), n.Node, `C:\k\kubelet.log`, to, ui.Discard{})
	var changed *transfer.RemoteChangedError
	if !errors.As(err, &changed) {
		t.Fatalf("got %v", err)
	}
	if left, err := filepath.Glob(filepath.Dir(to) + "/*"); err != nil || len(left) != 0 {
		t.Fatalf("left %v, %v", left, err)
	}
}

func TestUploadNeverTouchesAUsersOwnPart(t *testing.T) {
	n, mine := start(t), []byte("not swdt's")
	n.Put(`C:\k\kubelet.exe.part`, mine)
	if _, err := transfer.Upload(t.Context(), n.Node, local(t, content(100, 1)).Path, `C:\k\kubelet.exe`, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(n.Get(`C:\k\kubelet.exe.part`), mine) {
		t.Fatal("a file of the user's is gone")
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
	if _, err := transfer.Upload(t.Context(), n.Node, file+".none", `C:\x`, ui.Discard{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := transfer.Download(t.Context(), n.Node, `C:\none`, t.TempDir(), ui.Discard{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
