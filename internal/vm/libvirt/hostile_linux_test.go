package libvirt_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/deadline"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/libvirt"
)

// socketOf returns the path of a socket, on which serve answers each connection.
func socketOf(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "lv")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	check(t, os.Chmod(folder, 0o777))
	path := filepath.Join(folder, "sock")
	listener, err := net.Listen("unix", path)
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return path
}

func adopt(ctx context.Context, path string) error {
	_, err := libvirt.New().Adopt(ctx, vm.Machine{Domain: "win", URI: "test:///default?socket=" + path})
	return err
}

// headerSize is the size of the shortest message of libvirt's protocol, in bytes.
const headerSize = 28

// A daemon that is none, or hangs, is an error in time, and allocates nothing.
func TestADaemonThatIsNone(t *testing.T) {
	ctx, pass := deadline.Context(t.Context())
	silent := socketOf(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, headerSize))
		pass()
		_, _ = io.Copy(io.Discard, conn)
	})
	if err := adopt(ctx, silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent daemon: %v", err)
	}
	for name, reply := range map[string]string{
		"a short message": "\x00\x00\x00\x04", "a negative payload": "\x00\x00\x00\x1b" + strings.Repeat("\x00", 40),
		"a message of 4 GB": "\xff\xff\xff\xff" + strings.Repeat("\x00", 40), "HTTP": "HTTP/1.1 400 Bad Request\r\n\r\n",
		"an end": "", "a cut message": "\x00\x00\x00\x20\x00\x00",
	} {
		path := socketOf(t, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, headerSize))
			_, _ = io.WriteString(conn, reply)
		})
		err := adopt(t.Context(), path)
		if unreachable, ok := errors.AsType[*libvirt.ConnectError](err); !ok || unreachable.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoDaemon(t *testing.T) {
	err := adopt(t.Context(), filepath.Join(t.TempDir(), "none"))
	unreachable, ok := errors.AsType[*libvirt.ConnectError](err)
	if !ok {
		t.Fatalf("error %v, want a ConnectError", err)
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want a socket that does not exist", err)
	}
	if !strings.Contains(unreachable.Remedy, "libvirtd") {
		t.Errorf("the remedy is %q, want one about libvirtd", unreachable.Remedy)
	}
}

// Another user of your machine who listens on a socket is not taken for libvirt.
func TestAnotherUserIsNotLibvirt(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to listen as another user")
	}
	const nobody, same = 65534, ^uintptr(0)
	runtime.LockOSThread() // the user is the thread's
	defer runtime.UnlockOSThread()
	folder, err := os.MkdirTemp("", "lv")
	check(t, err)
	defer os.RemoveAll(folder)
	check(t, os.Chmod(folder, 0o777))
	as := func(user uintptr) {
		if _, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, same, user, same); failed != 0 {
			t.Fatal(failed)
		}
	}
	as(nobody)
	listener, err := net.Listen("unix", filepath.Join(folder, "sock"))
	as(0)
	check(t, err)
	defer listener.Close()
	err = adopt(t.Context(), filepath.Join(folder, "sock"))
	if err == nil || !strings.Contains(err.Error(), "user 65534 listens") {
		t.Errorf("another user is taken for libvirt: %v", err)
	}
}
