package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/shimdiag"
)

// stacksOf returns what the agent sends for a request.
func stacksOf(ctx context.Context, c *client, request *agentv1.StacksRequest) (string, error) {
	stream, err := c.processes.Stacks(ctx, request)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return text.String(), err
		}
		text.Write(reply.GetData())
	}
}

// containerdOf returns the PID of the machine's containerd, and the path of its dump.
func containerdOf(t *testing.T, m *simulated.Machine) (pid uint32, path string) {
	t.Helper()
	all, err := m.Process("look").Processes.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Name == "containerd.exe" {
			return p.PID, fmt.Sprintf(`C:\Windows\Temp\containerd.%d.stacks.log`, p.PID)
		}
	}
	t.Fatal("no containerd runs")
	return 0, ""
}

func TestGoroutinesOfContainerd(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	c := connect(t, m.Process("agent"))
	pid, path := containerdOf(t, m)
	for range 3 {
		text, err := stacksOf(t.Context(), c, &agentv1.StacksRequest{Pid: pid})
		if err != nil || !strings.Contains(text, "setupDumpStacks") {
			t.Fatalf("%v: %.200q", err, text)
		}
		if content, found := get(t, m, path); found {
			t.Errorf("the dump is left: %.200q", content)
		}
	}
	if _, err := stacksOf(t.Context(), c, &agentv1.StacksRequest{Pid: 4}); !is(err, fault.ErrNotExist) {
		t.Errorf("a process without the event: %v", err)
	}
	if err := m.Process("setup").Files.MakeFolder(`C:\Windows\SystemTemp`); err != nil {
		t.Fatal(err)
	}
	if text, err := stacksOf(t.Context(), c, &agentv1.StacksRequest{Pid: pid}); err != nil || text == "" {
		t.Errorf("a Windows with SystemTemp: %v", err)
	}
	for _, left := range []string{path, strings.Replace(path, "Temp", "SystemTemp", 1)} {
		if _, found := get(t, m, left); found {
			t.Errorf("%s is left", left)
		}
	}
}

// A dump that an administrator left is replaced, a dump of a moment ago is not: another swdt reads it.
func TestAnEarlierDump(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	c := connect(t, m.Process("agent"))
	pid, path := containerdOf(t, m)
	put(t, m, path, []byte("earlier"))
	if _, err := stacksOf(t.Context(), c, &agentv1.StacksRequest{Pid: pid}); !is(err, fault.ErrInUse) {
		t.Errorf("of a moment ago: %v", err)
	}
	if err := m.Process("setup").Files.SetModified(path, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if text, err := stacksOf(t.Context(), c, &agentv1.StacksRequest{Pid: pid}); err != nil || strings.Contains(text, "earlier") {
		t.Errorf("%v: %q", err, text)
	}
	if _, found := get(t, m, path); found {
		t.Error("it is left")
	}
}

// An ordinary user knows the name of the dump, and can make files in C:\Windows\Temp. He gains nothing: what he plants is neither
// written, read nor removed, and what the agent made he cannot replace.
func TestAnOrdinaryUserPlantsTheDump(t *testing.T) {
	const victim, secret = `C:\k\victim.log`, "the victim's content"
	for name, plant := range map[string]func(t *testing.T, user *simulated.Process, path string) error{
		"a file": func(_ *testing.T, user *simulated.Process, path string) error {
			return tryPlant(user.Platform.Files, path, evil)
		},
		"a folder": func(_ *testing.T, user *simulated.Process, path string) error {
			return user.Platform.Files.MakeFolder(path)
		},
		"a junction": func(_ *testing.T, user *simulated.Process, path string) error {
			return user.Junction(path, `C:\k`)
		},
	} {
		m := newMachine(t, simulated.Options{})
		put(t, m, victim, []byte(secret))
		c := connect(t, m.Process("agent"))
		pid, path := containerdOf(t, m)
		user := m.SpawnAs("user.exe", simulated.User)
		if err := plant(t, user, path); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := stacksOf(t.Context(), c, &agentv1.StacksRequest{Pid: pid})
		if !is(err, fault.ErrPermission) || text != "" {
			t.Errorf("%s: %v, %q", name, err, text)
		}
		if content, found := get(t, m, victim); !found || string(content) != secret {
			t.Errorf("%s: the victim is %q", name, content)
		}
		if _, err := m.Process("look").Files.Stat(path); err != nil {
			t.Errorf("%s: what the user made was removed: %v", name, err)
		}
	}
}

func TestAnOrdinaryUserCannotReplaceTheDump(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	c := connect(t, m.Process("agent"))
	pid, path := containerdOf(t, m)
	user := m.SpawnAs("user.exe", simulated.User)
	tried := 0
	m.Interleave(func(simulated.Operation) {
		files := user.Platform.Files
		if _, err := m.ReadFile(path); err != nil {
			return // it is not there
		}
		tried++
		for _, attempt := range []func() error{
			func() error { return files.Remove(path) }, func() error { return files.Rename(path, path+".away", false) },
			func() error { return files.SetACL(path, "D:P(A;;FA;;;WD)") }, func() error { return tryPlant(files, path, evil) },
			func() error { return user.Junction(path, `C:\k`) },
		} {
			if attempt() == nil {
				t.Error("the user replaced the dump")
			}
		}
		if file, err := files.Open(path); err == nil {
			t.Error("the user reads the dump")
			_ = file.Close()
		}
	})
	text, err := stacksOf(t.Context(), c, &agentv1.StacksRequest{Pid: pid})
	if err != nil || !strings.Contains(text, "setupDumpStacks") || tried == 0 {
		t.Errorf("%v after %d attempts: %.200q", err, tried, text)
	}
	if _, found := get(t, m, path); found {
		t.Error("it is left")
	}
}

// Any process could serve a pipe with a shim's name. The agent compares the pipe's server with the shim, and sends nothing to
// another one.
func TestASquattedPipe(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	c := connect(t, m.Process("agent"))
	path, _ := shimdiag.Pipe("k8s.io", "0123")
	squatter := m.Spawn("squatter.exe")
	listener, err := squatter.ListenPipe(path)
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan []byte, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		data, _ := io.ReadAll(conn)
		received <- data
	}()
	_, err = stacksOf(t.Context(), c, &agentv1.StacksRequest{Pid: squatter.PID() + 4, Namespace: "k8s.io", Id: "0123"})
	if !is(err, fault.ErrPermission) {
		t.Error(err)
	}
	if data := <-received; len(data) > 0 {
		t.Errorf("the squatter got %q", data)
	}
	for _, request := range []*agentv1.StacksRequest{
		{Pid: 8, Namespace: "k8s.io", Id: "none"}, {Pid: 8, Namespace: "k8s.io", Id: `..\..\containerd-containerd`}, {Pid: 8, Id: "x"},
	} {
		if _, err := stacksOf(t.Context(), c, request); !is(err, fault.ErrNotExist) {
			t.Errorf("%v: %v", request, err)
		}
	}
}

// A shim that accepts the request and does not answer is silent. One whose caller gives up earlier may only be slow.
func TestASilentShim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
		c := connect(t, m.Process("agent"))
		path, _ := shimdiag.Pipe("k8s.io", "0123")
		shim := m.Spawn("containerd-shim-runhcs-v1.exe")
		listener, err := shim.ListenPipe(path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(io.Discard, conn) }()
			}
		}()
		request := &agentv1.StacksRequest{Pid: shim.PID(), Namespace: "k8s.io", Id: "0123"}
		if _, err := stacksOf(t.Context(), c, request); !is(err, fault.ErrSilent) {
			t.Errorf("silent: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := stacksOf(ctx, c, request); is(err, fault.ErrSilent) || !is(err, context.DeadlineExceeded) {
			t.Errorf("an early caller: %v", err)
		}
		_ = listener.Close()
	})
}
