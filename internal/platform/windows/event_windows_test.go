package windows

import (
	"os"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
)

// The event has the access list of containerd's: cmd/containerd/command/main_windows.go.
func TestSignal(t *testing.T) {
	const name = `Global\swdt-test-event`
	sd, err := windows.SecurityDescriptorFromString("D:P(A;;GA;;;BA)(A;;GA;;;SY)")
	if err != nil {
		t.Fatal(err)
	}
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		t.Fatal(err)
	}
	event, err := windows.CreateEvent(&windows.SecurityAttributes{Length: 24, SecurityDescriptor: sd}, 0, 0, path)
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(event)
	for range 2 {
		if err := New().Processes.Signal(name); err != nil {
			t.Fatal(err)
		}
		if state, err := windows.WaitForSingleObject(event, 0); err != nil || state != windows.WAIT_OBJECT_0 {
			t.Errorf("the event was not set: %d, %v", state, err)
		}
	}
}

// The pipe itself names its server: here it is this process.
func TestPipeServer(t *testing.T) {
	conn, err := New().Network.DialPipe(t.Context(), servePipe(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if pid, err := platform.PipeServer(conn); err != nil || pid != uint32(os.Getpid()) {
		t.Errorf("process %d serves it, this is %d: %v", pid, os.Getpid(), err)
	}
}
