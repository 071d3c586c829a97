package criproxy_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/node/criproxy"
)

func TestASocketIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "cri.sock")
	listener, err := criproxy.Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case info.Mode().Perm() != want:
			t.Errorf("%s: info.Mode().Perm() is %v, want %v", name, info.Mode().Perm(), want)
		}
	}
	if got := criproxy.Endpoint(listener); got != "unix://"+path {
		t.Errorf("endpoint %s", got)
	}
	var busy *criproxy.BusyError
	if _, err := criproxy.Listen("unix://" + path); !errors.As(err, &busy) {
		t.Errorf("a second one: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left behind: %v", err)
	}
}

func TestASocketThatADeadProxyLeftIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cri.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	listener, err := criproxy.Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// Listen works with every length of path that Check accepts, for short and long file names.
func TestLongPaths(t *testing.T) {
	short, err := os.MkdirTemp("/tmp", "p")
	if err != nil {
		t.Skip("no short folder here: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	for length := 90; length <= 103; length++ {
		for _, name := range []string{"c.sock", "cri-of-a-node.sock"} {
			folder := filepath.Join(short, strings.Repeat("x", length-len(short)-len(name)-2))
			path := filepath.Join(folder, name)
			if len(path) != length {
				t.Fatalf("%d bytes, want %d", len(path), length)
			}
			listener, err := criproxy.Listen("unix://" + path)
			if err != nil {
				t.Errorf("%d bytes with the name %s: %v", length, name, err)
				continue
			}
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Error(err)
			} else {
				conn.Close()
			}
			listener.Close()
		}
	}
}

func TestAFileIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := criproxy.Listen("unix://" + path); err == nil {
		t.Error("it listens")
	}
	switch text, err := os.ReadFile(path); {
	case err != nil:
		t.Error(err)
	case string(text) != "data":
		t.Errorf("text is %q, want %q", string(text), "data")
	}
}

func TestListenRefusesOtherAddresses(t *testing.T) {
	for _, address := range []string{
		"", "cri.sock", "unix://cri.sock", "unix:///" + strings.Repeat("x", 200), "tcp://0.0.0.0:0",
		"tcp://:0", "tcp://[::]:0",
		"tcp://192.0.2.1:80", "tcp://localhost:0", "tcp://127.0.0.1", "npipe:////./pipe/x", "http://127.0.0.1:0",
	} {
		var refused *criproxy.AddressError
		if _, err := criproxy.Listen(address); !errors.As(err, &refused) {
			t.Errorf("%q: the error is %v, a %T, want a %T", address, err, err, refused)
		}
	}
	for _, address := range []string{"tcp://127.0.0.1:0", "tcp://127.0.0.2:0"} {
		listener, err := criproxy.Listen(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		listener.Close()
	}
}
