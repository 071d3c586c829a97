//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// sleeper starts a process with words in its command line, and ends it after the test.
func sleeper(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", "read line", "sh"}, words...)...)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return cmd
}

func TestAProcessIsBelievedByItsMark(t *testing.T) {
	cmd := sleeper(t, "-uuid", "1111", "-name", "x")
	for _, mark := range [][]string{{"-uuid", "2222"}, {"-uuid"[:4], "1111"}, {"1111", "-uuid"}, {"x", "1111"}, nil} {
		if p := Find(cmd.Process.Pid, mark...); p != nil {
			t.Errorf("found by %q", mark)
		}
	}
	if all := FindAll("-uuid", "1111"); len(all) != 1 || all[0].PID != cmd.Process.Pid {
		t.Errorf("found without its number: %v", all)
	}
	if all := FindAll("-uuid", "3333"); len(all) != 0 {
		t.Errorf("found by a mark that it does not have: %v", all)
	}
	p := Find(cmd.Process.Pid, "-uuid", "1111")
	if p == nil || !p.Alive() {
		t.Fatal("not found")
	}
	if err := p.Ended(t.Context(), 20*time.Millisecond); err == nil {
		t.Error("it has not ended")
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() { <-waited }) // before the cleanup of sleeper, which waits too
	if err := p.Ended(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if err := p.Signal(os.Kill); err != nil {
		t.Errorf("a process that has ended: %v", err)
	}
	if Find(cmd.Process.Pid, "-uuid", "1111") != nil {
		t.Error("found after its end")
	}
}

// Number 0 is this process's group, 1 is init, -1 is everything: none is ever signalled.
func TestNumbersOfMoreThanOneProcess(t *testing.T) {
	for _, pid := range []int{0, 1, -1, -os.Getpid(), 1 << 40} {
		if p := Find(pid, os.Args[0]); p != nil {
			t.Errorf("found %d", pid)
		}
	}
	if Find(os.Getpid(), os.Args[0]) == nil {
		t.Error("this process was not found")
	}
}

func TestTheBootIsKnown(t *testing.T) {
	first, second := BootID(), BootID()
	if first == "" || first != second {
		t.Errorf("two calls for one boot returned %q and %q", first, second)
	}
	if KernelRelease() == "" {
		t.Error("the kernel has no release")
	}
}

// TestAnEndingProcessIsAwaited: a process that is killed gives up its command line first and
// its files later. After AwaitEnding, its locks are free.
func TestAnEndingProcessIsAwaited(t *testing.T) {
	if err := AwaitEnding(t.Context(), os.Getpid()); err != nil {
		t.Errorf("a process that runs is not ending: %v", err)
	}
	if err := AwaitEnding(t.Context(), 0); err != nil {
		t.Errorf("no process: %v", err)
	}
}
