package sandbox_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pkg/sftp"

	"github.com/swdt-dev/swdt/internal/sandbox"
)

func TestSCP(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	scpWritesInPlace(t, s.address, s.keyFile, func() ([]byte, error) { return s.machine.ReadFile(`C:\file.bin`) })
}

// scpWritesInPlace copies files with OpenSSH's scp to a new name, over a shorter file and over a
// longer one. scp truncates the file when all data is written, and sends some megabytes before it
// waits for answers.
func scpWritesInPlace(t *testing.T, address, key string, written func() ([]byte, error)) {
	scp, err := exec.LookPath("scp")
	if err != nil {
		t.Skip(err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 80<<20)
	rand.Read(content[:1<<20])
	for n := 1 << 20; n < len(content); n *= 2 {
		copy(content[n:], content[1:n]) // cheaper than random data, and no two blocks are equal
	}
	for _, size := range []int{70 << 20, 80 << 20, 5<<20 + 1} {
		local := filepath.Join(t.TempDir(), "file.bin")
		if err := os.WriteFile(local, content[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		copied := exec.Command(scp, "-F", "none", "-i", key, "-P", port, "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
			"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile="+os.DevNull,
			local, sandbox.Administrator+"@"+host+":/C:/file.bin")
		if out, err := copied.CombinedOutput(); err != nil {
			t.Fatalf("scp of %d bytes: %v\n%s", size, err, out)
		}
		if got, err := written(); err != nil || !bytes.Equal(got, content[:size]) {
			t.Fatalf("%d bytes became %d others, %v", size, len(got), err)
		}
	}
}

func TestSFTPWritesAnywhereAndTruncates(t *testing.T) {
	s := serve(t, sandbox.ServerOptions{})
	client, err := sftp.NewClient(s.client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	file, err := client.OpenFile("/C:/file", os.O_WRONLY|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	at := func(offset int64, text string) {
		t.Helper()
		if _, err := file.WriteAt([]byte(text), offset); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want string) {
		t.Helper()
		if got, err := s.machine.ReadFile(`C:\file`); err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	at(6, "world")
	at(0, "hello ")
	want("hello world")
	at(4, "OW")
	want("hellOWworld")
	if err := file.Truncate(5); err != nil { // by name, and through the open file
		t.Fatal(err)
	}
	want("hellO")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(client.Truncate("/c:/FILE", 2), client.Truncate("/C:/file", 4)); err != nil {
		t.Fatal(err)
	}
	want("he\x00\x00")
	if err := client.Truncate("/C:/missing", 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("truncate what is missing: %v", err)
	}
}
