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
		if err != nil || status.State != platform.Running || status.PID == 0 {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
	}
	code, body, err := p.Network.HTTPGet(ctx, "http://127.0.0.1:10248/healthz")
	if err != nil || code != 200 || string(body) != "ok" {
		t.Errorf("healthz: %d %q %v", code, body, err)
	}
	log, err := m.ReadFile(`c:/var/log/KUBELET/kubelet.log`)
	if err != nil || len(log) == 0 {
		t.Errorf("log: %q %v", log, err)
	}
}
