package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
)

// background runs this test binary as the process behind a sandbox, which Up starts with the
// arguments `sandbox serve --state DIR`.
func background(args []string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := sandbox.RunBackground(context.Background(), args[len(args)-1], standIn(), os.Stdout, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func options(t *testing.T) sandbox.Options {
	t.Helper()
	o := sandbox.Options{StateDir: t.TempDir()}
	t.Cleanup(func() {
		list, err := sandbox.Status(context.Background(), o)
		if err != nil {
			t.Error(err)
		}
		for _, info := range list {
			down := o
			down.Name = info.Name
			if err := sandbox.Down(context.Background(), down); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}

func up(t *testing.T, o sandbox.Options) sandbox.Info {
	t.Helper()
	info, err := sandbox.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func connect(t *testing.T, info sandbox.Info) error {
	t.Helper()
	return connectWith(t, info, standIn())
}

func connectWith(t *testing.T, info sandbox.Info, agent agentbin.Agent) error {
	t.Helper()
	docs, err := config.Load([]string{info.Config}, nil)
	if err != nil {
		return err
	}
	n, err := node.Connect(t.Context(), docs[0], node.Options{Agent: agent, HomeDir: t.TempDir()})
	if err != nil {
		return err
	}
	return n.Close()
}

func TestUpUseDown(t *testing.T) {
	o := options(t)
	info := up(t, o)
	switch {
	case info.Name != sandbox.DefaultName:
		t.Errorf("info.Name is %v, want %v", info.Name, sandbox.DefaultName)
	case info.Driver != sandbox.DefaultDriver:
		t.Errorf("info.Driver is %v, want %v", info.Driver, sandbox.DefaultDriver)
	}
	if err := connect(t, info); err != nil {
		t.Errorf("use the sandbox: %v", err)
	}
	if again := up(t, o); again.PID != info.PID || again.Hostname != info.Hostname {
		t.Errorf("a second up gave %+v, not %+v", again, info)
	}
	switch list, err := sandbox.Status(t.Context(), o); {
	case err != nil:
		t.Errorf("status: %v", err)
	case len(list) != 1:
		t.Errorf("status: list has %d elements, want 1: %v", len(list), list)
	case list[0] != info:
		t.Errorf("status: list[0] is %v, want %v", list[0], info)
	}
	if err := sandbox.Down(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if list, err := sandbox.Status(t.Context(), o); err != nil || len(list) != 0 {
		t.Errorf("status after down: %+v, %v", list, err)
	}
	if _, err := os.Stat(filepath.Dir(info.Config)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("state is left: %v", err)
	}
	if err := sandbox.Down(t.Context(), o); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("a second down: %v", err)
	}
}

func TestASandboxOfAnotherBuildSaysSo(t *testing.T) {
	info := up(t, options(t))
	executable := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "another"})
	sum := sha256.Sum256(executable)
	err := connectWith(t, info, agentbin.Agent{
		Hash: hex.EncodeToString(sum[:]), Size: int64(len(executable)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(executable)), nil },
	})
	switch {
	case err == nil:
		t.Error("no error, want one")
	case !strings.Contains(err.Error(), "another build of swdt: end it with swdt sandbox down"):
		t.Errorf("err.Error() lacks %q:\n%s", "another build of swdt: end it with swdt sandbox down", err.Error())
	}
}

func TestSeveralSideBySide(t *testing.T) {
	o := options(t)
	first, second := o, o
	first.Name, second.Name = "first", "second"
	a, b := up(t, first), up(t, second)
	if a.Hostname == b.Hostname || a.PID == b.PID {
		t.Fatalf("%+v and %+v are the same", a, b)
	}
	if err := sandbox.Down(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := connect(t, b); err != nil {
		t.Errorf("the second after the first's end: %v", err)
	}
}

func TestACrashIsNoticedAndCleanedUp(t *testing.T) {
	o := options(t)
	info := up(t, o)
	kill(t, info.PID)
	list, err := sandbox.Status(t.Context(), o)
	if err != nil || len(list) != 0 {
		t.Errorf("status after a crash: %+v, %v", list, err)
	}
	if _, err := os.Stat(filepath.Dir(info.Config)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("state is left: %v", err)
	}

	crashed := up(t, o)
	kill(t, crashed.PID)
	if again := up(t, o); again.PID == crashed.PID {
		t.Error("up after a crash gave the dead sandbox")
	} else if err := connect(t, again); err != nil {
		t.Errorf("use the sandbox after a crash: %v", err)
	}
}

func TestItEndsWhenItsFolderIsDeleted(t *testing.T) {
	o := options(t)
	info := up(t, o)
	if err := os.RemoveAll(filepath.Dir(info.Config)); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, info.PID)
}

// kill kills a process, which also releases the sandbox's lock.
func kill(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, pid)
}

// awaitEnd waits until a process is gone. It is a child of this process, which reaps it; after that
// no process has the PID. (The kernel does not use a PID again that soon.)
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err != nil {
		return // gone already
	}
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for process.Signal(syscall.Signal(0)) == nil {
		select {
		case <-tick.C:
		case <-limit.Done():
			t.Fatal("the process does not end")
		}
	}
}

func TestWhyItDoesNotStartIsTold(t *testing.T) {
	o := options(t)
	info := up(t, o)
	o.Name, o.Port = "other", port(t, info)
	_, err := sandbox.Up(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that is taken: %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.StateDir, "other")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("state of the failed one is left: %v", err)
	}
}

func port(t *testing.T, info sandbox.Info) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(info.Hostname, "127.0.0.1:%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBadOptions(t *testing.T) {
	for _, o := range []sandbox.Options{
		{Name: "../escape"}, {Name: "a b"}, {Name: "-x"}, {Driver: "qemu"}, {Shell: "fish"}, {Port: 70000},
	} {
		o.StateDir = t.TempDir()
		if _, err := sandbox.Up(t.Context(), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
		if entries, _ := os.ReadDir(o.StateDir); len(entries) > 0 {
			t.Errorf("%+v left %v", o, entries)
		}
	}
}

func TestDownTouchesNothingThatIsNotASandbox(t *testing.T) {
	o := sandbox.Options{StateDir: t.TempDir(), Name: "mine"}
	file := filepath.Join(o.StateDir, "mine", "precious")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Down(t.Context(), o); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("down: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
