package swap_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// A wrapper's process goes on after the end of its program, so the program itself must settle. The
// simulated nssm does what the real one was seen to do: e2e/nssm_test.go.
func TestAProgramThatEndsBehindItsWrapper(t *testing.T) {
	const nssm, runner = `C:\k\nssm.exe`, `C:\k\kube-log-runner.exe`
	none := uint64(0)
	for _, c := range []struct {
		name, line, fault, exit string
		throttle                *uint64 // milliseconds; nil: nssm's own
		want                    swap.Result
	}{
		{name: "it runs", line: nssm, want: swap.Committed},
		{name: "nssm pauses", line: nssm, fault: "crash-at-start", want: swap.RolledBack},
		{name: "nssm starts it again", line: nssm, fault: "exit-after=1600ms", want: swap.RolledBack},
		{name: "nssm starts it again and again", line: nssm, fault: "crash-at-start", throttle: &none, want: swap.RolledBack},
		{name: "nssm ignores the end", line: nssm, fault: "crash-at-start", exit: "Ignore", want: swap.RolledBack},
		{name: "nssm ignores a later end", line: nssm, fault: "exit-after=2s", exit: "Ignore", want: swap.RolledBack},
		{name: "nssm ends with it", line: nssm, fault: "crash-at-start", exit: "Exit", want: swap.RolledBack},
		{name: "kube-log-runner", line: runner + " " + kubeletExe + " --windows-service", want: swap.Committed},
		{name: "kube-log-runner, a crash", line: runner + " " + kubeletExe + " --windows-service", fault: "exit-after=500ms",
			want: swap.RolledBack},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				n.place(t, nssm, binary("nssm", "v2.24.0", ""))
				n.place(t, runner, binary("kube-log-runner", "v1.29.0", ""))
				n.registryNumber(t, "AppThrottle", c.throttle)
				n.exitAction(t, c.exit)
				n.register(t, c.line, map[string]string{"Application": kubeletExe,
					"AppParameters": `--log-file=C:\logs\own.log`, "AppStderr": `C:\logs\err.log`}, true)
				staged := n.stageKubelet(t, "v1.30.0", c.fault)
				staged.Health = swap.Health{} // a program that ends is found without a health check
				outcome, _ := n.push(t, staged)
				if outcome.Result != c.want || (c.fault != "") != (len(outcome.Components[0].LogLines) > 0) {
					t.Errorf("outcome: %+v %v, want %s, with the lines of its log", outcome, outcome.Components[0], c.want)
				}
				if s := n.service(t, "kubelet"); s.State != platform.Running {
					t.Errorf("the service is %s", s.State)
				}
			})
		})
	}
}

// nssm with AppRotateFiles renames its log at each start, and begins a new one: all of that belongs to this push,
// however long the old log was.
func TestTheLinesOfALogThatWasRenamed(t *testing.T) {
	const log, old = `C:\logs\kubelet.log`, `C:\logs\kubelet-1.log`
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.register(t, kubeletExe+" --log-file="+log, nil, true)
		n.place(t, log, []byte("a short log"))
		n.OnOperation(func(op simulated.Operation) simulated.Verdict {
			begins := op.Kind == simulated.OpServiceStart && op.Target == "kubelet" && op.Phase == simulated.Before
			if begins && n.read(t, old) == nil {
				if err := n.Process("nssm").Files.Rename(log, old, false); err != nil {
					t.Error(err)
				}
			}
			return simulated.Continue()
		})
		outcome, _ := n.push(t, n.stageKubelet(t, "v1.30.0", "crash-at-start"))
		lines := outcome.Components[0].LogLines
		if outcome.Result != swap.RolledBack || len(lines) == 0 || !strings.HasPrefix(lines[0], "I") {
			t.Errorf("%+v: %q", outcome, lines)
		}
	})
}

func (n *node) registryNumber(t *testing.T, name string, value *uint64) {
	t.Helper()
	if value == nil {
		return
	}
	err := n.Process("setup").Registry.Set(`HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Parameters`,
		platform.RegistryValue{Name: name, Type: platform.RegistryDWord, Integer: *value})
	if err != nil {
		t.Fatal(err)
	}
}

func (n *node) exitAction(t *testing.T, action string) {
	t.Helper()
	err := n.Process("setup").Registry.Set(`HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Parameters\AppExit`,
		platform.RegistryValue{Type: platform.RegistryString, String: action})
	if err != nil {
		t.Fatal(err)
	}
}
