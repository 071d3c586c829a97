package sandbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/ui"
)

func needWine(t *testing.T) {
	t.Helper()
	if err := wine.Check(); err != nil {
		t.Skip(err)
	}
}

// dialSandbox logs in to a sandbox.
func dialSandbox(t *testing.T, info sandbox.Info) *ssh.Client {
	t.Helper()
	client, err := ssh.Dial("tcp", info.Hostname, sshConfig(t, info))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// sshConfig returns a configuration with the keys in a sandbox's folder.
func sshConfig(t *testing.T, info sandbox.Info) *ssh.ClientConfig {
	t.Helper()
	folder := filepath.Dir(info.Config)
	read := func(name string) ssh.Signer {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		key, err := ssh.ParsePrivateKey(data)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	return &ssh.ClientConfig{
		User: sandbox.Administrator, Auth: []ssh.AuthMethod{ssh.PublicKeys(read("client_key"))},
		HostKeyCallback: ssh.FixedHostKey(read("host_key").PublicKey()),
	}
}

func TestWine(t *testing.T) {
	needWine(t)
	o := options(t)
	o.Driver = "wine"
	info := up(t, o)
	client := dialSandbox(t, info)

	t.Run("commands", func(t *testing.T) {
		for _, test := range []struct {
			line, stdout, stderr string
			code                 int
		}{
			{"ver", "Microsoft Windows", "", 0},
			{"cmd /c exit 7", "", "", 7},
			{"echo hello", "hello\r\n", "", 0},
			{`if exist C:\windows\system32\keeper.exe echo there`, "there", "", 0},
			{"nosuchthing", "", "'nosuchthing' is not recognized", 1},
			{`C:\nosuchfolder\x.exe`, "", "The system cannot find the path specified.", 1},
			{"nosuchthing 2>nul || sc query EventLog", "SERVICE_NAME: EventLog", "", 0},
		} {
			stdout, stderr, code := output(t, client, test.line)
			switch {
			case code != test.code:
				t.Errorf("%s: code is %v, want %v", test.line, code, test.code)
			case !strings.Contains(stdout, test.stdout):
				t.Errorf("%s: stdout lacks %q:\n%s", test.line, test.stdout, stdout)
			case !strings.Contains(stderr, test.stderr):
				t.Errorf("%s: stderr lacks %q:\n%s", test.line, test.stderr, stderr)
			}
		}
	})
	t.Run("SFTP", func(t *testing.T) { sftpUnderWine(t, client, info.Prefix) })
	t.Run("scp", func(t *testing.T) {
		scpWritesInPlace(t, info.Hostname, filepath.Join(filepath.Dir(info.Config), "client_key"),
			func() ([]byte, error) {
				return os.ReadFile(filepath.Join(info.Prefix, "drive_c", "file.bin"))
			})
	})
	t.Run("behind another SSH server", func(t *testing.T) {
		var out bytes.Buffer
		code, err := sandbox.RunShell(t.Context(), sandbox.ShellOptions{Prefix: info.Prefix}, "cmd /c echo shared & exit 3",
			ui.Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard})
		switch {
		case err != nil:
			t.Error(err)
		case code != 3:
			t.Errorf("code is %v, want 3", code)
		case strings.TrimSpace(out.String()) != "shared":
			t.Errorf("out.String() is %q, want %q", strings.TrimSpace(out.String()), "shared")
		}
	})
	t.Run("a reboot", func(t *testing.T) { rebootUnderWine(t, client, info) })
	t.Run("a crash leaves nothing running", func(t *testing.T) {
		kill(t, info.PID)
		if list, err := sandbox.Status(t.Context(), o); err != nil || len(list) != 0 {
			t.Errorf("status: %+v, %v", list, err)
		}
		if pids := prefixProcesses(t, info.Prefix); len(pids) > 0 {
			t.Errorf("still running in the prefix: %v", pids)
		}
		if _, err := os.Stat(info.Prefix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the prefix is left: %v", err)
		}
	})
}

func sftpUnderWine(t *testing.T, client *ssh.Client, prefix string) {
	files, err := sftp.NewClient(client, sftp.UseConcurrentWrites(true))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	content := make([]byte, 2<<20)
	rand.Read(content)
	if err := files.MkdirAll("/C:/ProgramData/some"); err != nil {
		t.Fatal(err)
	}
	file, err := files.Create("/c:/programdata/SOME/file.bin")
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.ReadFrom(bytes.NewReader(content))
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(prefix, "drive_c", "ProgramData", "some", "file.bin"))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("in the prefix: %d bytes, %v", len(got), err)
	}
	if err := files.Rename("/C:/ProgramData/some/file.bin", "/C:/windows/win.ini"); err == nil {
		t.Error("a rename replaced its target")
	}
	// A link out of the prefix is not followed.
	if err := os.Symlink("/etc", filepath.Join(prefix, "drive_c", "out")); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Open("/C:/out/passwd"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read through a link out of the prefix: %v", err)
	}
}

// rebootUnderWine switches the prefix off, and checks that connections are cut and the sandbox
// boots the prefix again by itself.
func rebootUnderWine(t *testing.T, client *ssh.Client, info sandbox.Info) {
	prefix, err := wine.Open(info.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	// Reboot returns when the prefix is down. The test does not wait for that, since
	// the sandbox soon boots the prefix again.
	ctx, cancel := context.WithCancel(t.Context())
	rebooted := make(chan struct{})
	go func() { _ = prefix.Reboot(ctx); close(rebooted) }()
	_ = client.Wait() // until the connection is cut; the error does not matter
	cancel()
	<-rebooted
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := ssh.Dial("tcp", info.Hostname, sshConfig(t, info))
		if err == nil {
			defer conn.Close()
			if stdout, _, code := output(t, conn, "ver"); code != 0 {
				t.Errorf("after the reboot: %q, %d", stdout, code)
			}
			return
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			t.Fatalf("the machine does not come back: %v", err)
		}
	}
}

// prefixProcesses returns the processes that belong to a Wine prefix.
func prefixProcesses(t *testing.T, prefix string) (pids []string) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environments {
		environment, err := os.ReadFile(path)
		if err == nil && bytes.Contains(environment, []byte("WINEPREFIX="+prefix+"\x00")) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func TestWithoutWineItSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	o := sandbox.Options{StateDir: t.TempDir(), Driver: "wine"}
	_, err := sandbox.Up(t.Context(), o)
	var missing *wine.MissingError
	switch {
	case !errors.As(err, &missing):
		t.Errorf("the error is %v, a %T, want a %T", err, err, missing)
	case !strings.Contains(err.Error(), wine.InstallCommand):
		t.Errorf("err.Error() lacks %q:\n%s", wine.InstallCommand, err.Error())
	}
	if _, err := os.Stat(filepath.Join(o.StateDir, sandbox.DefaultName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("state is left: %v", err)
	}
}
