package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// At a boot with a cold disk, on which the agent's own file takes longer to open than the SCM waits for a service, the
// guardian connects to the SCM in time (ServicesPipeTimeout: 30 s, then event 7009; golang/go#23479).
func TestAGuardianConnectsBeforeItReadsItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInstaller(t)
		i.Register(simulated.Program{
			Name:  "swdt-agent",
			Match: func(image *simulated.Image) bool { return image.SHA256() == i.hash },
			Main: func(ctx context.Context, p *simulated.Process) int {
				m := agent.Machine{Platform: p.Platform, Executable: p.Executable}
				return agent.Program(ctx, m, p.Args, p.AsService, p.Stdin, p.Stdout, p.Stderr)
			},
		})
		i.install(t)
		i.AddService(platform.ServiceConfig{Name: "swdt-guardian", StartType: platform.StartAuto,
			CommandLine: `"` + i.path() + `" ` + swap.GuardianArgument + " 20240101-000000-0badc0de"})
		i.Interleave(func(op simulated.Operation) {
			if op.Target == i.path() {
				time.Sleep(40 * time.Second)
			}
		})
		i.Reboot()
		if err := i.AwaitUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		// The guardian of a transaction that does not exist removes its own registration.
		status, err := i.Process("look").Services.Status(t.Context(), "swdt-guardian")
		if !errors.Is(err, fault.ErrNoService) {
			t.Errorf("the guardian did not run: its exit code is %d (%v)", status.ExitCode, err)
		}
	})
}
