package simulated_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// bytesCodec passes messages unchanged.
type bytesCodec struct{}

func (bytesCodec) Name() string                       { return "proto" }
func (bytesCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }

// criVersion queries containerd over its pipe and returns the strings in its
// reply.
func criVersion(t *testing.T, p *platform.Platform) ([]string, error) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///pipe",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{})),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return p.Network.DialPipe(ctx, simulated.ContainerdPipe)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var request, reply []byte
	if err := conn.Invoke(t.Context(), "/runtime.v1.RuntimeService/Version", &request, &reply); err != nil {
		return nil, err
	}
	var fields []string
	for len(reply) > 0 {
		_, _, n := protowire.ConsumeTag(reply)
		text, size := protowire.ConsumeString(reply[n:])
		if size < 0 {
			t.Fatal("not a message of strings")
		}
		fields = append(fields, text)
		reply = reply[n+size:]
	}
	return fields, nil
}

// swap replaces a service's executable and starts the service.
func swap(t *testing.T, m *simulated.Machine, name, path string, spec simulated.BinarySpec) (
	*platform.Platform, error) {
	t.Helper()
	ctx := t.Context()
	p := m.Process("swap")
	for _, service := range []string{"kubelet", name} {
		pid := m.ServiceStates()[service].PID
		if pid == 0 {
			continue
		}
		handle, err := p.Processes.Open(pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Services.Stop(ctx, service); err != nil {
			t.Fatal(err)
		}
		if err := handle.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	m.WriteFile(path, simulated.Binary(spec))
	return p, p.Services.Start(ctx, name)
}

func awaitState(t *testing.T, p *platform.Platform, name string, want platform.ServiceState) platform.ServiceStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		s, err := p.Services.Status(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if s.State == want {
			return s
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s stays %s", name, s.State)
		}
	}
}

func TestContainerdAnswersCRI(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	got, err := criVersion(t, m.Process("test"))
	switch {
	case err != nil:
		t.Fatal(err)
	case strings.Join(got, " ") != "0.1.0 containerd v1.6.27 v1":
		t.Fatalf(`strings.Join(got, " ") is %q, want %q`, strings.Join(got, " "), "0.1.0 containerd v1.6.27 v1")
	}
	p, err := swap(t, m, "containerd", simulated.ContainerdPath,
		simulated.BinarySpec{Name: "containerd", Version: "v1.7.12"})
	if err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "containerd", platform.Running)
	switch got, err := criVersion(t, p); {
	case err != nil:
		t.Error(err)
	case got[2] != "v1.7.12":
		t.Errorf("got[2] is %q, want %q", got[2], "v1.7.12")
	}
	p, err = swap(t, m, "containerd", simulated.ContainerdPath,
		simulated.BinarySpec{Name: "containerd", Fault: simulated.Unhealthy})
	if err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "containerd", platform.Running)
	if _, err := criVersion(t, p); status.Code(err) != codes.Unavailable {
		t.Errorf("unhealthy: %v", err)
	}
}

func TestKubeletNeedsContainerd(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("test")
	switch code, _, err := p.Network.HTTPGet(t.Context(), "http://localhost:10248/healthz"); {
	case code != 200:
		t.Fatalf("code is %v, want 200", code)
	case err != nil:
		t.Fatal(err)
	}
	if err := p.Services.Stop(t.Context(), "containerd"); !errors.Is(err, fault.ErrDependents) {
		t.Errorf("stop under the kubelet: %v", err)
	}
	m.Kill("containerd.exe")
	switch code, _, err := p.Network.HTTPGet(t.Context(), "http://127.0.0.1:10248/healthz"); {
	case code != 500:
		t.Errorf("code is %v, want 500", code)
	case err != nil:
		t.Error(err)
	}
}

func TestFaults(t *testing.T) {
	try := func(t *testing.T, fault simulated.Fault, look func(t *testing.T, m *simulated.Machine,
		p *platform.Platform, started error)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			m := simulated.New(simulated.Options{})
			defer m.Close()
			p, err := swap(t, m, "kubelet", simulated.KubeletPath,
				simulated.BinarySpec{Name: "kubelet", Version: "v1", Fault: fault})
			look(t, m, p, err)
		})
	}
	healthz := func(p *platform.Platform) int {
		code, _, err := p.Network.HTTPGet(context.Background(), "http://127.0.0.1:10248/healthz")
		if err != nil {
			return 0
		}
		return code
	}
	try(t, simulated.NoFault, func(t *testing.T, m *simulated.Machine, p *platform.Platform, err error) {
		awaitState(t, p, "kubelet", platform.Running)
		switch {
		case err != nil:
			t.Error(err)
		case healthz(p) != 200:
			t.Errorf("healthz(p) is %v, want 200", healthz(p))
		}
	})
	try(t, simulated.CrashAtStart, func(t *testing.T, m *simulated.Machine, p *platform.Platform, err error) {
		switch s := m.ServiceStates()["kubelet"]; {
		case !errors.Is(err, fault.ErrStartFailed):
			t.Errorf("the error is %v, want %v", err, fault.ErrStartFailed)
		case s.State != platform.Stopped:
			t.Errorf("s.State is %v, want %v", s.State, platform.Stopped)
		case s.ExitCode != 1053:
			t.Errorf("s.ExitCode is %v, want 1053", s.ExitCode)
		}
		if log, _ := m.ReadFile(`C:\var\log\kubelet\kubelet.log`); !strings.Contains(string(log), "crash at start") {
			t.Errorf("log: %s", log)
		}
	})
	try(t, simulated.CrashStarted, func(t *testing.T, m *simulated.Machine, p *platform.Platform, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if s := awaitState(t, p, "kubelet", platform.Stopped); s.ExitCode != 1067 {
			t.Errorf("s.ExitCode is %v, want 1067", s.ExitCode)
		}
	})
	try(t, simulated.HangAtStart, func(t *testing.T, m *simulated.Machine, p *platform.Platform, err error) {
		switch s := m.ServiceStates()["kubelet"]; {
		case !errors.Is(err, fault.ErrStartFailed):
			t.Errorf("the error is %v, want %v", err, fault.ErrStartFailed)
		case s.State != platform.Stopped:
			t.Errorf("s.State is %v, want %v", s.State, platform.Stopped)
		}
	})
	try(t, simulated.SlowStart(3*time.Second),
		func(t *testing.T, m *simulated.Machine, p *platform.Platform, err error) {
			begun := time.Now()
			awaitState(t, p, "kubelet", platform.Running)
			if took := time.Since(begun); took < 2*time.Second || took > 4*time.Second {
				t.Errorf("took %v", took)
			}
		})
	try(t, simulated.Unhealthy, func(t *testing.T, m *simulated.Machine, p *platform.Platform, err error) {
		awaitState(t, p, "kubelet", platform.Running)
		if healthz(p) != 500 {
			t.Errorf("healthz: %d", healthz(p))
		}
	})
	try(t, simulated.ExitAfter(2*time.Second),
		func(t *testing.T, m *simulated.Machine, p *platform.Platform, err error) {
			awaitState(t, p, "kubelet", platform.Running)
			time.Sleep(1900 * time.Millisecond)
			awaitState(t, p, "kubelet", platform.Running)
			if s := awaitState(t, p, "kubelet", platform.Stopped); s.ExitCode != 1067 {
				t.Errorf("s.ExitCode is %v, want 1067", s.ExitCode)
			}
			awaitState(t, p, "kubelet", platform.Running) // its recovery: after 10 s
		})
	try(t, simulated.HangOnStop, func(t *testing.T, m *simulated.Machine, p *platform.Platform, err error) {
		awaitState(t, p, "kubelet", platform.Running)
		if err := p.Services.Stop(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		switch s := m.ServiceStates()["kubelet"]; {
		case s.State != platform.StopPending:
			t.Errorf("s.State is %v, want %v", s.State, platform.StopPending)
		case s.PID == 0:
			t.Error("s.PID is 0")
		}
	})
}

func TestAStoppedServicesProcessLivesOnForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := simulated.New(simulated.Options{ExitDelay: time.Second})
		defer m.Close()
		p := m.Process("p")
		handle, err := p.Processes.Open(m.ServiceStates()["kubelet"].PID)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Services.Stop(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		awaitState(t, p, "kubelet", platform.Stopped)
		if err := p.Files.Remove(simulated.KubeletPath); !errors.Is(err, fault.ErrPermission) {
			t.Errorf("stopped is not ended: %v", err)
		}
		if err := handle.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Files.Remove(simulated.KubeletPath); err != nil {
			t.Errorf("the process has ended: %v", err)
		}
	})
}

func TestSharedProcess(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("p")
	if err := p.Services.Start(t.Context(), "UmRdpService"); err != nil {
		t.Fatal(err)
	}
	a, b := awaitState(t, p, "UmRdpService", platform.Running), awaitState(t, p, "TermService", platform.Running)
	switch {
	case !a.SharedProcess:
		t.Error("a.SharedProcess is false, want true")
	case a.PID != b.PID:
		t.Errorf("a.PID is %v, want %v", a.PID, b.PID)
	case a.PID == 0:
		t.Error("a.PID is 0")
	}
	if err := p.Services.Stop(t.Context(), "UmRdpService"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "UmRdpService", platform.Stopped)
	if _, err := p.Processes.Open(a.PID); err != nil {
		t.Errorf("the shared process: %v", err)
	}
}

func TestTheSCMGoesOnWhenItsCallerIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := simulated.New(simulated.Options{})
		defer m.Close()
		p, err := swap(t, m, "kubelet", simulated.KubeletPath, simulated.BinarySpec{Name: "kubelet"})
		if err != nil {
			t.Fatal(err)
		}
		awaitState(t, p, "kubelet", platform.Running)
		if err := p.Services.Stop(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		awaitState(t, p, "kubelet", platform.Stopped)
		m.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpServiceStart && op.Phase == simulated.After {
				return simulated.KillCaller()
			}
			return simulated.Continue()
		})
		if err := p.Services.Start(t.Context(), "kubelet"); !errors.Is(err, simulated.ErrKilled) {
			t.Fatalf("the error is %v, want %v", err, simulated.ErrKilled)
		}
		awaitState(t, m.Process("other"), "kubelet", platform.Running)
	})
}
