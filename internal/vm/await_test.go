package vm_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// started makes and starts a VM, and returns the address of its SSH server, at which nothing listens.
func started(t *testing.T) (s *vm.Machines, address string) {
	t.Helper()
	s = machines(t, t.TempDir(), &simulatedvm.Driver{})
	_, err := s.Create(t.Context(), document(t, "win-1"), ui.Discard{})
	check(t, err)
	report, err := s.Start(t.Context(), "win-1", ui.Discard{})
	check(t, err)
	return s, report.Address
}

// serve reads the greeting of each connection at an address, and gives the connection to a function, with its number,
// until the test ends.
func serve(t *testing.T, address string, answer func(i int, conn net.Conn)) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	check(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for i := 0; ; i++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReaderSize(conn, 16).ReadString('\n') // an error shows in the answer
			answer(i, conn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-served
	})
}

// A port that is forwarded to a guest without a network accepts connections and is silent: the next
// look does not wait for the end of this one. On a busy machine a look may end before the next one can begin, so the
// server is silent until a look begins while the one before is open.
func TestALookThatHangsDelaysNoOther(t *testing.T) {
	s, address := started(t)
	var silent net.Conn
	var greeted bool
	serve(t, address, func(i int, conn net.Conn) {
		switch {
		case greeted: // swdt may look once more
			_ = conn.Close()
		case i > 0 && isOpen(t, silent):
			greeted = true
			_, _ = conn.Write([]byte("SSH-2.0-test\r\n"))
			_ = conn.Close()
		default:
			if i > 0 {
				_ = silent.Close()
			}
			silent = conn
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := s.Await(ctx, "win-1", ui.Discard{})
	check(t, err)
	if !strings.Contains(report.Message, "its SSH server answers") {
		t.Errorf("%+v", report)
	}
	check(t, silent.SetReadDeadline(time.Time{}))
	if _, err := silent.Read(make([]byte, 1)); err == nil { // it was closed
		t.Error("the silent look is still open")
	}
	_ = silent.Close()
}

// isOpen reports whether the other side of a connection that never sends anything has not closed it.
func isOpen(t *testing.T, conn net.Conn) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Error(err)
	}
	_, err := conn.Read(make([]byte, 1))
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// Another server at the VM's port ends the wait at once.
func TestAServerThatIsNotSSHEndsTheWait(t *testing.T) {
	s, address := started(t)
	serve(t, address, func(_ int, conn net.Conn) {
		_, _ = conn.Write([]byte("220 mail"))
		_ = conn.Close()
	})
	if _, err := s.Await(t.Context(), "win-1", ui.Discard{}); err == nil ||
		!strings.Contains(err.Error(), "is no SSH server") {
		t.Errorf("got %v", err)
	}
}

// A script that has failed ends the wait for it at once, and one that reports nothing does so after two minutes.
func TestAScriptThatReportsNoSuccess(t *testing.T) {
	for sent, want := range map[string]time.Duration{"": 2 * time.Minute, "SWDT exit=1 failed: sshd\r\n": 0} {
		s := machines(t, t.TempDir(), &simulatedvm.Driver{})
		made, err := s.Create(t.Context(), document(t, "win-1"), ui.Discard{})
		check(t, err)
		_, err = s.Start(t.Context(), "win-1", ui.Discard{})
		check(t, err)
		check(t, s.ExpectFirstStart("win-1"))
		check(t, simulatedvm.Send(vm.Machine{Folder: made.Folder}, sent))
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			err := s.AwaitFirstStart(t.Context(), "win-1")
			if took := time.Since(begun); err != nil || took != want {
				t.Errorf("after %q: %v after %s, want nil after %s", sent, err, took, want)
			}
		})
	}
}
