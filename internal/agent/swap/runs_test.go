package swap_test

import (
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/internal/scm"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
)

// inspect returns the kubelet whose binary a node file has at destination.
func (n *node) inspect(t *testing.T, destination string) *agentv1.ComponentState {
	t.Helper()
	m, p := n.session()
	defer p.Exit()
	processes, err := m.Platform.Processes.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state, err := swap.Inspect(t.Context(), m.Platform, hashcache.Load(m.Platform.Files), &agentv1.InspectComponent{
		Name: "kubelet", Service: "kubelet", Destination: destination, AskVersion: true,
	}, processes)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// register stops the kubelet, registers it with a command line, sets nssm's values, and starts it again.
func (n *node) register(t *testing.T, commandLine string, parameters map[string]string, start bool) {
	t.Helper()
	p := n.Process("setup")
	if _, err := scm.Stop(t.Context(), p, "kubelet", scm.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Services.Configure(t.Context(), platform.ServiceConfig{Name: "kubelet", CommandLine: commandLine}); err != nil {
		t.Fatal(err)
	}
	for name, value := range parameters {
		err := p.Registry.Set(`HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Parameters`,
			platform.RegistryValue{Name: name, Type: platform.RegistryExpandString, String: value})
		if err != nil {
			t.Fatal(err)
		}
	}
	if start {
		if _, err := scm.Start(t.Context(), p, "kubelet", nil, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
}

// The program of a service is that of its process, and the one that its next start runs, whatever
// wrapper starts it.
func TestTheProgramOfAService(t *testing.T) {
	const nssm, elsewhere, runner, script = `C:\k\nssm.exe`, `C:\other\kubelet.exe`, `C:\k\runner.exe`, `C:\k\Start.ps1`
	powershell := `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
	for _, c := range []struct {
		name, line      string
		parameters      map[string]string
		stopped         bool
		running, starts string // the destination counts as its own path
	}{
		{name: "the destination", line: kubeletExe + " --windows-service", running: kubeletExe, starts: kubeletExe},
		{name: "another file", line: elsewhere + " --windows-service", running: elsewhere, starts: elsewhere},
		{name: "another file, stopped", line: elsewhere, stopped: true, starts: elsewhere},
		{name: "nssm", line: nssm, parameters: map[string]string{"Application": kubeletExe}, running: kubeletExe, starts: kubeletExe},
		{name: "nssm, another file", line: nssm, parameters: map[string]string{"Application": elsewhere, "AppParameters": "--v=2"},
			running: elsewhere, starts: elsewhere},
		{name: "nssm, stopped", line: nssm, parameters: map[string]string{"Application": elsewhere}, stopped: true, starts: elsewhere},
		{name: "another wrapper with the file among its arguments", line: runner + " --restart " + kubeletExe, stopped: true, starts: kubeletExe},
		{name: "a script that names the file", line: nssm, parameters: map[string]string{"Application": powershell,
			"AppParameters": "-File " + script}, stopped: true, starts: kubeletExe},
		{name: "a script that cannot be read", line: powershell + ` -File D:\Other.ps1`, stopped: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				n.place(t, elsewhere, binary("kubelet", "v1.28.0", ""))
				n.place(t, nssm, binary("nssm", "v2.24.0", ""))
				n.place(t, script, []byte(`$args = "--v=2"; cmd /c "`+kubeletExe+` $args"`))
				n.register(t, c.line, c.parameters, !c.stopped)
				state := n.inspect(t, kubeletExe)
				check := func(what string, got *agentv1.Image, want string) {
					if got.GetPath() != want || got.GetDestination() != (want == kubeletExe) {
						t.Errorf("%s: %v, want %q", what, got, want)
					}
					if want == elsewhere && (got.GetVersion() != "v1.28.0" || got.GetSha256() != n.hashAt(t, elsewhere)) {
						t.Errorf("%s: version and hash of another file: %v", what, got)
					}
				}
				check("running", state.GetRunning(), c.running)
				check("starts", state.GetStarts(), c.starts)
				if pid := state.GetRunning().GetPid(); !c.stopped && (pid == 0 || (pid != state.GetService().GetPid()) != (c.line == nssm)) {
					t.Errorf("process %d runs it, and the service's is %d", pid, state.GetService().GetPid())
				}
				if (state.GetStarts() == nil) != (c.starts == "") || c.starts == "" && state.GetProgram().GetUnknown() == "" {
					t.Errorf("the program: %v", state.GetProgram())
				}
			})
		})
	}
}

// A service that was registered again while it ran has two programs until its next start.
func TestAServiceThatWasRegisteredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		err := n.Process("setup").Services.Configure(t.Context(),
			platform.ServiceConfig{Name: "kubelet", CommandLine: `C:\other\kubelet.exe --windows-service`})
		if err != nil {
			t.Fatal(err)
		}
		state := n.inspect(t, kubeletExe)
		if !state.GetRunning().GetDestination() || state.GetStarts().GetPath() != `C:\other\kubelet.exe` {
			t.Errorf("running %v, starts %v", state.GetRunning(), state.GetStarts())
		}
	})
}
