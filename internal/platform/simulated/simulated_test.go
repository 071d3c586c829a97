package simulated_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newMachine(t *testing.T, o simulated.Options) *simulated.Machine {
	t.Helper()
	m := simulated.New(o)
	t.Cleanup(m.Close)
	return m
}

func TestANodeRunsItsComponents(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("test")
	ctx := context.Background()
	for _, name := range []string{"containerd", "kubelet", "kube-proxy", "sshd"} {
		status, err := p.Services.Status(ctx, name)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case status.State != platform.Running:
			t.Errorf("%s: status.State is %v, want %v", name, status.State, platform.Running)
		case status.PID == 0:
			t.Errorf("%s: status.PID is 0", name)
		}
	}
	code, body, err := p.Network.HTTPGet(ctx, "http://127.0.0.1:10248/healthz")
	switch {
	case err != nil:
		t.Errorf("healthz: %v", err)
	case code != 200:
		t.Errorf("healthz: code is %v, want 200", code)
	case string(body) != "ok":
		t.Errorf("healthz: body is %q, want %q", string(body), "ok")
	}
	log, err := m.ReadFile(`c:/var/log/KUBELET/kubelet.log`)
	if err != nil || len(log) == 0 {
		t.Errorf("log: %q %v", log, err)
	}
}
