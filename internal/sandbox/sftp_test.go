package sandbox_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/pkg/sftp"

	"github.com/swdt-dev/swdt/internal/sandbox"
)

func TestSFTP(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	client, err := sftp.NewClient(s.client(t), sftp.UseConcurrentWrites(true))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	if home, err := client.Getwd(); err != nil || home != "/C:/Users/Administrator" {
		t.Errorf("home: %q, %v", home, err)
	}
	if err := client.MkdirAll("/C:/some/folder"); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 3<<20)
	rand.Read(content)
	file, err := client.Create("/C:/some/folder/file.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.ReadFrom(bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := client.Rename("/C:/some/folder/file.bin", "/c:/SOME/folder/moved.bin"); err != nil {
		t.Fatal(err)
	}
	// C:/ without the slash is absolute too.
	moved, err := client.Open("C:/some/folder/moved.bin")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(moved); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes back, %v", len(got), err)
	}
	moved.Close()

	entries, err := client.ReadDir("/C:/some/folder")
	switch {
	case err != nil:
		t.Errorf("folder: %v", err)
	case len(entries) != 1:
		t.Errorf("folder: entries has %d elements, want 1: %v", len(entries), entries)
	case entries[0].Name() != "moved.bin":
		t.Errorf("folder: entries[0].Name() is %q, want %q", entries[0].Name(), "moved.bin")
	case entries[0].Size() != int64(len(content)):
		t.Errorf("folder: entries[0].Size() is %v, want %v", entries[0].Size(), int64(len(content)))
	}
	switch drives, err := client.ReadDir("/"); {
	case err != nil:
		t.Errorf("drives: %v", err)
	case len(drives) != 1:
		t.Errorf("drives: drives has %d elements, want 1: %v", len(drives), drives)
	case drives[0].Name() != "C:":
		t.Errorf("drives: drives[0].Name() is %q, want %q", drives[0].Name(), "C:")
	}
	if _, err := client.Stat("/etc/passwd"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path without a drive: %v", err)
	}
	if err := client.Remove("/C:/some/folder"); err == nil {
		t.Error("a folder was removed as a file")
	}
	if err := errors.Join(client.Remove("/C:/some/folder/moved.bin"),
		client.RemoveDirectory("/C:/some/folder")); err != nil {
		t.Error(err)
	}
}

func TestSFTPRefusesToReplaceARunningExecutable(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	client, err := sftp.NewClient(s.client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.OpenFile("/C:/k/kubelet.exe", os.O_WRONLY|os.O_TRUNC)
	if status, ok := errors.AsType[*sftp.StatusError](err); !ok || status.FxCode() != sftp.ErrSSHFxFailure {
		t.Errorf("open for writing: %v, want a failure, as for a sharing violation", err)
	}
	if err := client.Remove("/C:/k/kubelet.exe"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("remove: %v", err)
	}
}

func TestWithoutSFTP(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{NoSFTP: true})
	if client, err := sftp.NewClient(s.client(t)); err == nil {
		client.Close()
		t.Error("SFTP was served")
	}
}
